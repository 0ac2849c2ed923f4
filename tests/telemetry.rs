//! Metrics and health over the wire, as Prometheus and an orchestrator read them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rust_decimal::Decimal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tollgate::domain::clock::Timestamp;
use tollgate::domain::format::WireFormat;
use tollgate::domain::ids::{CredentialId, KeyId, RequestId, UserId};
use tollgate::domain::limit_type::LimitType;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::{Record, RequestOutcome};
use tollgate::domain::usage::Usage;
use tollgate::telemetry::{KeyTotals, Metrics, Readiness, router};

use crate::support::ports::free_port;

fn record() -> Record {
    Record {
        request_id: RequestId::new(),
        started_at: Timestamp(1_700_000_000_000),
        admitted_ms: 0,
        key_id: None,
        key_name: Some("a-key-name".into()),
        user_id: None,
        user_name: Some("a-user-name".into()),
        session_id: Some("a-session-name".into()),
        provider_id: None,
        provider_name: Some("north".into()),
        client_format: WireFormat::Native,
        provider_format: Some(WireFormat::Chat),
        endpoint: "/v1/messages".into(),
        model: "a-model-name".into(),
        upstream_model: None,
        streamed: true,
        status_code: 200,
        outcome: RequestOutcome::Completed,
        error_message: None,
        usage: Usage { input: 100, output: 20, cache_read: 5, ..Usage::default() },
        cost: Some(NanoUsd(1_500_000)),
        price_model: None,
        parts: Vec::new(),
        notional_cost: None,
        cache_miss: None,
        cost_multiplier: Decimal::ONE,
        estimated: false,
        duration_ms: 1200,
        first_byte_ms: Some(300),
        overhead_us: 42,
        attempts: 1,
        decisions: Vec::new(),
        user_agent: None,
        client_addr: None,
    }
}

/// The value of the sample that begins with `name_and_labels`.
fn sample(text: &str, name_and_labels: &str) -> Option<f64> {
    let line = text.lines().find(|line| {
        line.strip_prefix(name_and_labels).is_some_and(|rest| rest.starts_with(' '))
    })?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn a_finished_request_is_counted_once_in_every_family() {
    let metrics = Metrics::new().unwrap();
    metrics.request_done(&record());
    metrics.request_done(&Record { cost: None, estimated: true, ..record() });
    let refused = Record {
        provider_name: None,
        provider_format: None,
        status_code: 429,
        outcome: RequestOutcome::Refused,
        usage: Usage::default(),
        cost: None,
        first_byte_ms: None,
        attempts: 0,
        ..record()
    };
    metrics.request_done(&refused);
    let text = metrics.render();
    let expected = [
        (
            "tollgate_requests_total{client_format=\"native\",outcome=\"completed\",provider_format=\"chat-compatible\",status_class=\"2xx\"}",
            2.0,
        ),
        (
            "tollgate_requests_total{client_format=\"native\",outcome=\"refused\",provider_format=\"none\",status_class=\"4xx\"}",
            1.0,
        ),
        ("tollgate_tokens_total{kind=\"input\",provider=\"north\"}", 200.0),
        ("tollgate_tokens_total{kind=\"cache_read\",provider=\"north\"}", 10.0),
        ("tollgate_cost_usd_total{provider=\"north\"}", 0.0015),
        ("tollgate_unpriced_requests_total", 1.0),
        ("tollgate_estimated_requests_total", 1.0),
        ("tollgate_first_byte_seconds_count{client_format=\"native\",streamed=\"true\"}", 2.0),
        (
            "tollgate_first_byte_seconds_bucket{client_format=\"native\",streamed=\"true\",le=\"0.25\"}",
            0.0,
        ),
        (
            "tollgate_first_byte_seconds_bucket{client_format=\"native\",streamed=\"true\",le=\"0.5\"}",
            2.0,
        ),
        (
            "tollgate_request_duration_seconds_count{client_format=\"native\",streamed=\"true\"}",
            2.0,
        ),
        ("tollgate_gateway_overhead_seconds_count", 3.0),
        ("tollgate_gateway_overhead_seconds_bucket{le=\"0.00003\"}", 0.0),
        ("tollgate_gateway_overhead_seconds_bucket{le=\"0.00005\"}", 3.0),
    ];
    for (name, value) in expected {
        assert_eq!(sample(&text, name), Some(value), "{name} in\n{text}");
    }
    assert!(!text.contains("a-key-name") && !text.contains("a-user-name"));
    assert!(!text.contains("a-session-name") && !text.contains("a-model-name"));
}

#[test]
fn label_values_stay_bounded() {
    let metrics = Metrics::new().unwrap();
    metrics.refused(LimitType::KeyDaily);
    metrics.breaker_state("north", "open");
    metrics.breaker_state("south", "HALF_OPEN");
    let text = metrics.render();
    assert_eq!(sample(&text, "tollgate_refusals_total{limit=\"key_daily\"}"), Some(1.0));
    assert_eq!(sample(&text, "tollgate_breaker_state{provider=\"north\"}"), Some(2.0));
    assert_eq!(sample(&text, "tollgate_breaker_state{provider=\"south\"}"), Some(1.0));
    metrics.forget_breakers();
    assert!(!metrics.render().contains("tollgate_breaker_state{"));
    for n in 0..100 {
        metrics.attempt(&format!("renamed {n}"), "ok");
    }
    metrics.attempt("north", "timeout");
    metrics.keep_providers(|name| name == "north");
    let text = metrics.render();
    assert!(!text.contains("renamed"), "names that are gone do not pile up");
    assert_eq!(
        sample(&text, "tollgate_upstream_attempts_total{class=\"timeout\",provider=\"north\"}"),
        Some(1.0)
    );
}

#[test]
fn models_users_and_keys_have_a_bounded_number_of_series() {
    let metrics = Metrics::by_holder(true, true).unwrap();
    let of = |n: i64| Record {
        user_id: Some(UserId(n)),
        key_id: Some(KeyId(n)),
        user_name: Some(format!("user-{n}").into()),
        ..record()
    };
    for n in 0..600 {
        metrics.request_of(&of(n), Some(&format!("model-{n}")));
    }
    metrics.request_of(&of(7), None);
    let limited =
        Record { status_code: 429, outcome: RequestOutcome::Refused, provider_id: None, ..of(7) };
    metrics.request_of(&limited, Some("model-7"));
    let text = metrics.render();
    let expected = [
        ("tollgate_model_requests_total{model=\"model-7\",result=\"ok\"}", 1.0),
        ("tollgate_model_requests_total{model=\"model-7\",result=\"limited\"}", 1.0),
        ("tollgate_model_requests_total{model=\"other\",result=\"ok\"}", 101.0),
        ("tollgate_model_tokens_total{kind=\"output\",model=\"model-7\"}", 40.0),
        ("tollgate_model_cost_usd_total{model=\"model-7\"}", 0.003),
        ("tollgate_model_first_byte_seconds_count{model=\"model-7\"}", 2.0),
        ("tollgate_user_requests_total{result=\"ok\",user=\"user-7\",user_id=\"7\"}", 2.0),
        ("tollgate_user_requests_total{result=\"ok\",user=\"other\",user_id=\"other\"}", 400.0),
        (
            "tollgate_key_requests_total{key=\"a-key-name\",key_id=\"7\",result=\"limited\",user=\"user-7\"}",
            1.0,
        ),
    ];
    for (name, value) in expected {
        assert_eq!(sample(&text, name), Some(value), "{name}");
    }
    let without = Metrics::new().unwrap();
    without.request_of(&of(1), None);
    let text = without.render();
    assert!(!text.contains("user-1") && !text.contains("a-key-name"), "{text}");
}

#[test]
fn a_scrape_brings_figures_up_to_date_first() {
    let metrics = Metrics::new().unwrap();
    metrics.before_scrape(Box::new(|metrics| metrics.journal.pending_records.set(7)));
    let text = metrics.render();
    assert_eq!(sample(&text, "tollgate_journal_pending_records"), Some(7.0));
    let version = format!("tollgate_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(sample(&text, &version), Some(1.0));
    let resident = sample(&text, "process_resident_memory_bytes").unwrap();
    assert!(resident > 1_000_000.0, "{resident}");
}

/// Every metric that the shipped alerts and dashboard use is exported by the gateway.
#[test]
fn shipped_alerts_and_dashboard_use_names_that_exist() {
    let metrics = Metrics::new().unwrap();
    metrics.request_done(&record());
    metrics.request_done(&Record { cost: None, estimated: true, ..record() });
    metrics.refused(LimitType::KeyDaily);
    metrics.unauthenticated("missing");
    metrics.attempt("north", "ok");
    metrics.breaker_state("north", "closed");
    metrics.provider_health.state("north", "failing", true);
    metrics.provider_health.failed("north", "connect");
    metrics.provider_health.switched_off("north", false);
    let totals = KeyTotals {
        id: CredentialId::KEY,
        attempts: 1,
        failures: 1,
        is_usable: false,
        is_refused: true,
    };
    metrics.credentials.key("north", "b", &totals);
    metrics.request_of(&record(), Some("a-model"));
    metrics.redis_up("counters", true);
    metrics.node.reloaded(true);
    let text = metrics.render();
    let shipped = [
        include_str!("../conf/prometheus/alerts.yml"),
        include_str!("../conf/grafana/tollgate.json"),
    ];
    let mut found = 0;
    for file in shipped {
        for word in file.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if word.starts_with("tollgate_") || word.starts_with("process_") {
                found += 1;
                let exported = text.lines().any(|line| {
                    line.strip_prefix(word)
                        .is_some_and(|rest| rest.starts_with('{') || rest.starts_with(' '))
                });
                assert!(exported, "{word} is not exported");
            }
        }
    }
    assert!(found > 20, "{found}");
    // Every figure about components that can be lost is covered by an alert or a panel.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let parts = ["tollgate_redis_", "tollgate_journal_", "tollgate_writer_", "tollgate_store_"];
        if parts.iter().any(|part| name.starts_with(part)) {
            assert!(
                shipped.iter().any(|file| file.contains(name)),
                "neither an alert nor a panel has {name}"
            );
        }
    }
}

async fn get(addr: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    let status = reply.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = reply.split_once("\r\n\r\n").unwrap();
    (status, body.to_owned())
}

#[tokio::test]
async fn the_health_listener_answers_and_stops() {
    // A port that is given to no other listener once this one is closed.
    let listener = TcpListener::bind(("127.0.0.1", free_port())).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let store_there = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&store_there);
    let readiness = Arc::new(move || {
        let store =
            if seen.load(Ordering::SeqCst) { Ok(()) } else { Err("unreachable".to_owned()) };
        Readiness::of(vec![("migrations", Ok(())), ("store", store)])
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async {
        let _dropped = stopped.await;
    };
    let client = async {
        assert_eq!(get(addr, "/livez").await, (200, "ok\n".to_owned()));
        let (status, body) = get(addr, "/readyz").await;
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let parts = serde_json::json!({"migrations": "ok", "store": "unreachable"});
        let expected = serde_json::json!({"ready": false, "degraded": [], "parts": parts});
        assert_eq!((status, body), (503, expected));
        store_there.store(true, Ordering::SeqCst);
        assert_eq!(get(addr, "/readyz").await.0, 200);
        let (status, body) = get(addr, "/metrics").await;
        assert_eq!(status, 200);
        assert!(body.contains("# TYPE tollgate_build_info gauge"));
        assert_eq!(get(addr, "/else").await.0, 404);
        stop.send(()).unwrap();
    };
    let metrics = Arc::new(Metrics::new().unwrap());
    let (pages, slots) = (router(metrics, readiness), crate::admin::places::slots());
    let serving =
        tollgate::admin::serve(listener.into_std().unwrap(), None, pages, slots, shutdown);
    let (served, ()) = tokio::join!(serving, client);
    served.unwrap();
    assert!(TcpStream::connect(addr).await.is_err());
}
