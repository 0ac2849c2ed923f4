//! The relay of clients' telemetry: `/v1/metrics`, `/v1/logs`, `/v1/traces` with a gateway key.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{
    Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use serde_json::{Value, json};
use tollgate::domain::clock::{Clock as _, SystemClock};

use super::check::attribute;
use super::collector::Collector;
use crate::proxy::fixture::Fixture;
use crate::support::gateway::ADMIN_TOKEN;

fn text(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(any_value::Value::StringValue(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value), key_strindex: 0 }
}

fn resource() -> Option<Resource> {
    let attributes = vec![text("service.name", "claude-code"), text("user.name", "somebody else")];
    Some(Resource { attributes, ..Resource::default() })
}

fn scope() -> Option<InstrumentationScope> {
    Some(InstrumentationScope {
        name: "com.anthropic.claude_code".to_owned(),
        ..InstrumentationScope::default()
    })
}

fn now() -> u64 {
    u64::try_from(SystemClock.now().0).unwrap() * 1_000_000
}

/// What Claude Code sends: a counter, an event as a log line, a span.
fn body_of(signal: &str) -> Vec<u8> {
    match signal {
        "metrics" => {
            let point = NumberDataPoint {
                start_time_unix_nano: now(),
                time_unix_nano: now(),
                attributes: vec![text("user.id", "hash")],
                value: Some(number_data_point::Value::AsDouble(1.0)),
                ..NumberDataPoint::default()
            };
            let sum =
                Sum { data_points: vec![point], aggregation_temporality: 2, is_monotonic: true };
            let name = "claude_code.session.count".to_owned();
            let metrics =
                vec![Metric { name, data: Some(metric::Data::Sum(sum)), ..Metric::default() }];
            let scope_metrics =
                vec![ScopeMetrics { scope: scope(), metrics, ..ScopeMetrics::default() }];
            let part = ResourceMetrics {
                resource: resource(),
                scope_metrics,
                ..ResourceMetrics::default()
            };
            ExportMetricsServiceRequest { resource_metrics: vec![part] }.encode_to_vec()
        }
        "logs" => {
            let body = Some(AnyValue {
                value: Some(any_value::Value::StringValue("claude_code.api_request".into())),
            });
            let record = LogRecord {
                time_unix_nano: now(),
                severity_number: 9,
                body,
                ..LogRecord::default()
            };
            let scope_logs = vec![ScopeLogs {
                scope: scope(),
                log_records: vec![record],
                ..ScopeLogs::default()
            }];
            let part = ResourceLogs { resource: resource(), scope_logs, ..ResourceLogs::default() };
            ExportLogsServiceRequest { resource_logs: vec![part] }.encode_to_vec()
        }
        _ => {
            let span = Span {
                trace_id: vec![1; 16],
                span_id: vec![2; 8],
                name: "interaction".to_owned(),
                kind: 3,
                flags: 0x101,
                start_time_unix_nano: now(),
                end_time_unix_nano: now() + 1,
                ..Span::default()
            };
            let scope_spans =
                vec![ScopeSpans { scope: scope(), spans: vec![span], ..ScopeSpans::default() }];
            let part =
                ResourceSpans { resource: resource(), scope_spans, ..ResourceSpans::default() };
            ExportTraceServiceRequest { resource_spans: vec![part] }.encode_to_vec()
        }
    }
}

async fn relaying(collector: &Collector, more: &[(&str, &str)]) -> Fixture {
    let mut env = vec![
        ("TOLLGATE_TELEMETRY_OTLP_RELAY_ENDPOINT", collector.url.as_str()),
        ("TOLLGATE_TELEMETRY_OTLP_RELAY_HEADERS", "authorization=Bearer%20collector-token"),
    ];
    env.extend_from_slice(more);
    Fixture::bare(&env).await
}

fn post(fixture: &Fixture, signal: &str, kind: &str, body: Vec<u8>) -> reqwest::RequestBuilder {
    let url = format!("{}/v1/{signal}", fixture.gateway.proxy);
    fixture.gateway.client.post(url).header("content-type", kind).body(body)
}

const PROTOBUF: &str = "application/x-protobuf";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_sends_arrives_with_the_users_name_and_without_its_key() {
    let collector = Collector::http().await;
    let fixture = relaying(&collector, &[]).await;
    for signal in ["metrics", "logs", "traces"] {
        let answer = post(&fixture, signal, PROTOBUF, body_of(signal))
            .bearer_auth(&fixture.key)
            .send()
            .await
            .unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.headers()["content-type"].to_str().unwrap()),
            (200, PROTOBUF)
        );
        assert_eq!(answer.bytes().await.unwrap().len(), 0);
    }
    // It is not a model call.
    fixture.gateway.metric_shows("tollgate_otlp_relayed_total", |count| count == 3.0).await;
    assert_eq!(fixture.gateway.logs(0).await.len(), 0);
    let received = collector.received.lock();
    let resources = [
        received.metrics[0].resource_metrics[0].resource.clone(),
        received.logs[0].resource_logs[0].resource.clone(),
        received.traces[0].resource_spans[0].resource.clone(),
    ];
    for resource in resources {
        let attributes = resource.unwrap().attributes;
        let of = |name| attribute(&attributes, name).unwrap();
        assert_eq!(
            (of("user.name"), of("service.name")),
            ("ada".to_owned(), "claude-code".to_owned())
        );
        assert_eq!(of("tollgate.user.id"), fixture.user_id.to_string());
        assert_eq!(of("tollgate.key.name"), "default");
    }
    for headers in &received.headers {
        assert_eq!(headers["authorization"], "Bearer collector-token");
        assert!(
            headers.values().all(|value| !value.to_str().unwrap().contains(&fixture.key)),
            "{headers:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_and_compressed_bodies_are_relayed_too() {
    let collector = Collector::http().await;
    let fixture = relaying(&collector, &[]).await;
    let body = json!({"resourceLogs": [{"resource": {"attributes": []}, "scopeLogs": [
        {"scope": {"name": "s"}, "logRecords": [{"timeUnixNano": now().to_string(), "body": {"stringValue": "hi"}}]}]}]});
    let answer = post(&fixture, "logs", "application/json", body.to_string().into_bytes());
    let answer = answer.bearer_auth(&fixture.key).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.json::<Value>().await.unwrap()), (200, json!({})));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &body_of("metrics")).unwrap();
    let answer = post(&fixture, "metrics", PROTOBUF, gzip.finish().unwrap())
        .header("content-encoding", "gzip");
    assert_eq!(answer.bearer_auth(&fixture.key).send().await.unwrap().status(), 200);
    let received = collector.received.lock();
    assert_eq!(received.metrics.len(), 1);
    let (signal, body) = &received.json[0];
    assert_eq!(signal, "logs");
    let attributes = &body["resourceLogs"][0]["resource"]["attributes"];
    assert_eq!(attributes[0], json!({"key": "user.name", "value": {"stringValue": "ada"}}));
}

/// A client that cuts its texts between two UTF-16 units, or counts further than a double can.
#[tokio::test(flavor = "multi_thread")]
async fn what_json_can_hold_and_no_program_reads_reaches_the_collector_as_it_is() {
    let (listener, url) = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        (listener, url)
    };
    let env = [("TOLLGATE_TELEMETRY_OTLP_RELAY_ENDPOINT", url.as_str())];
    let fixture = Fixture::bare(&env).await;
    let logs = r#"[{"body":{"stringValue":"\ud83d"},"x":1e999,"y":123456789012345678901.50}]"#;
    let body = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":{logs}}}]}}]}}"#);
    let collecting = async {
        let (mut tcp, _) = listener.accept().await.unwrap();
        let (_, body) = crate::resilience::raw::read_message(&mut tcp).await.unwrap();
        let reply = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        assert!(crate::resilience::raw::write(&mut tcp, reply.as_bytes()).await);
        String::from_utf8(body).unwrap()
    };
    let sending = post(&fixture, "logs", "application/json", body.into_bytes());
    let (answer, received) = tokio::join!(sending.bearer_auth(&fixture.key).send(), collecting);
    assert_eq!(answer.unwrap().status(), 200);
    assert!(received.contains(logs) && received.contains("\"ada\""), "{received}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_callers_with_a_key_get_through_and_only_what_is_telemetry() {
    let collector = Collector::http().await;
    let fixture = relaying(&collector, &[("TOLLGATE_TELEMETRY_OTLP_RELAY_MAX_BODY", "1KiB")]).await;
    let with_key =
        |kind: &str, body: Vec<u8>| post(&fixture, "metrics", kind, body).bearer_auth(&fixture.key);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &[0; 2000]).unwrap();
    let bomb = with_key(PROTOBUF, gzip.finish().unwrap()).header("content-encoding", "gzip");
    for (what, request, status) in [
        ("no key", post(&fixture, "metrics", PROTOBUF, body_of("metrics")), 401),
        (
            "an unknown key",
            post(&fixture, "metrics", PROTOBUF, Vec::new()).bearer_auth("sk-none"),
            401,
        ),
        ("a large body", with_key(PROTOBUF, vec![0; 1025]), 413),
        ("a body that is large once decompressed", bomb, 413),
        ("damage", with_key(PROTOBUF, vec![0xff; 9]), 400),
        ("no OTLP", with_key("application/json", b"[]".to_vec()), 400),
        ("another type", with_key("text/plain", b"x".to_vec()), 415),
        (
            "the administrator",
            post(&fixture, "metrics", PROTOBUF, body_of("metrics")).bearer_auth(ADMIN_TOKEN),
            200,
        ),
    ] {
        assert_eq!(request.send().await.unwrap().status(), status, "{what}");
    }
    let get = fixture
        .gateway
        .client
        .get(format!("{}/v1/metrics", fixture.gateway.proxy))
        .send()
        .await
        .unwrap();
    assert_eq!((get.status().as_u16(), &get.headers()["allow"]), (405, &"POST".parse().unwrap()));
    let text = fixture
        .gateway
        .client
        .get(format!("{}/metrics", fixture.gateway.metrics))
        .send()
        .await
        .unwrap();
    let text = text.text().await.unwrap();
    assert!(
        text.contains("tollgate_otlp_relayed_total{result=\"refused\",signal=\"metrics\"} 5"),
        "{text}"
    );
    // The administrator is not a user.
    let received = collector.received.lock();
    assert_eq!(received.metrics.len(), 1);
    let resource = received.metrics[0].resource_metrics[0].resource.clone().unwrap();
    assert_eq!(attribute(&resource.attributes, "user.name"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_collectors_answer_is_the_clients_and_without_one_it_may_come_back() {
    let collector = Collector::http().await;
    let fixture = relaying(&collector, &[("TOLLGATE_TELEMETRY_OTLP_RELAY_TIMEOUT", "300ms")]).await;
    let ask =
        || post(&fixture, "traces", PROTOBUF, body_of("traces")).bearer_auth(&fixture.key).send();
    collector.received.lock().refuse = vec![429];
    let answer = ask().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
    collector.received.lock().hang = true;
    let answer = ask().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["retry-after"]),
        (503, &"5".parse().unwrap())
    );
    collector.received.lock().hang = false;
    assert_eq!(ask().await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_relays_collector_may_be_behind_tls() {
    let collector = Collector::http().await;
    let pem = |name: &str| format!("{}/tests/admin/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let url = collector.behind_tls(&pem("cert.pem"), &pem("key.pem")).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headers");
    std::fs::write(&file, "x-token=of%20the%20file").unwrap();
    let env = [
        ("TOLLGATE_TELEMETRY_OTLP_RELAY_ENDPOINT", url.as_str()),
        ("TOLLGATE_TELEMETRY_OTLP_RELAY_HEADERS_FILE", file.to_str().unwrap()),
    ];
    let ask = |fixture: &Fixture| {
        post(fixture, "logs", PROTOBUF, body_of("logs")).bearer_auth(&fixture.key).send()
    };
    let fixture = Fixture::bare(&env).await;
    assert_eq!(ask(&fixture).await.unwrap().status(), 503, "its certificate is not trusted");
    let authority = pem("cert.pem");
    let trusted =
        [&env[..], &[("TOLLGATE_TELEMETRY_OTLP_RELAY_TLS_CA", authority.as_str())]].concat();
    let fixture = Fixture::bare(&trusted).await;
    assert_eq!(ask(&fixture).await.unwrap().status(), 200);
    assert_eq!(collector.received.lock().headers[0]["x-token"], "of the file");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_the_paths_are_unknown() {
    let fixture = Fixture::bare(&[]).await;
    for signal in ["metrics", "logs", "traces"] {
        let answer = post(&fixture, signal, PROTOBUF, body_of(signal))
            .bearer_auth(&fixture.key)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 404, "{signal}");
    }
}

/// A protobuf field of a message.
fn field(number: u8, of: &[u8]) -> Vec<u8> {
    let mut field = vec![(number << 3) | 2];
    prost::encode_length_delimiter(of.len(), &mut field).unwrap();
    field.extend_from_slice(of);
    field
}

/// Bodies of a few hundred bytes, once they are compressed, that the gateway must not make large.
fn hollow(signal: &str) -> Vec<(String, &'static str, Vec<u8>)> {
    let (parts, scopes, records) = match signal {
        "metrics" => ("resourceMetrics", "scopeMetrics", "metrics"),
        "logs" => ("resourceLogs", "scopeLogs", "logRecords"),
        _ => ("resourceSpans", "scopeSpans", "spans"),
    };
    let n = 150_000;
    let many = |one: &[u8]| one.repeat(n);
    let list = |one: &str| format!("[{}{one}]", format!("{one},").repeat(n - 1));
    let scoped = |scopes_of: &str| format!(r#"{{"{parts}":[{{"{scopes}":{scopes_of}}}]}}"#);
    let in_scope = |of: Vec<u8>| field(1, &field(2, &of));
    let attributes = [field(1, &many(&field(1, &[]))), field(2, &field(2, &[]))].concat();
    let json = "application/json";
    [
        ("resources", PROTOBUF, many(&field(1, &[]))),
        ("resources with an empty scope", PROTOBUF, many(&field(1, &field(2, &[])))),
        ("scopes", PROTOBUF, field(1, &many(&field(2, &[])))),
        ("records", PROTOBUF, in_scope(many(&field(2, &[])))),
        ("attributes", PROTOBUF, field(1, &attributes)),
        ("resources", json, format!(r#"{{"{parts}":{}}}"#, list("{}")).into_bytes()),
        ("scopes", json, scoped(&list("{}")).into_bytes()),
        ("records", json, scoped(&format!(r#"[{{"{records}":{}}}]"#, list("{}"))).into_bytes()),
        (
            "attributes",
            json,
            format!(r#"{{"{parts}":[{{"resource":{{"attributes":{}}}}}]}}"#, list("{}"))
                .into_bytes(),
        ),
    ]
    .map(|(what, kind, body)| (format!("{signal}: {what}, {kind}"), kind, body))
    .into()
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_without_data_cost_little_and_do_not_reach_the_collector() {
    let collector = Collector::http().await;
    let fixture = relaying(&collector, &[]).await;
    for signal in ["metrics", "logs", "traces"] {
        for (what, kind, body) in hollow(signal) {
            let decoded = body.len();
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            std::io::Write::write_all(&mut gzip, &body).unwrap();
            let before = fixture.gateway.memory_mib("VmHWM");
            let request = post(&fixture, signal, kind, gzip.finish().unwrap())
                .header("content-encoding", "gzip");
            let answer = request.bearer_auth(&fixture.key).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{what}");
            assert_eq!(answer.headers()["content-type"], kind, "{what}");
            let expected: &[u8] = if kind == PROTOBUF { b"" } else { b"{}" };
            assert_eq!(answer.bytes().await.unwrap(), expected, "{what}");
            let grown = fixture.gateway.memory_mib("VmHWM").saturating_sub(before);
            let most = 16 * decoded as u64 / (1 << 20) + 8;
            assert!(grown <= most, "{what}: {decoded} bytes became {grown} MiB");
        }
    }
    assert_eq!(collector.received.lock().headers.len(), 0, "nothing reached the collector");
}

#[tokio::test(flavor = "multi_thread")]
async fn hollow_parts_beside_data_are_left_out_and_what_goes_out_is_bounded() {
    let collector = Collector::http().await;
    let fixture =
        relaying(&collector, &[("TOLLGATE_TELEMETRY_OTLP_RELAY_MAX_BODY", "64KiB")]).await;
    let send = async |signal: &str, kind: &str, body: Vec<u8>| {
        let answer = post(&fixture, signal, kind, body).bearer_auth(&fixture.key).send().await;
        answer.unwrap().status().as_u16()
    };
    // As protobuf: each resource with its data once, in its place.
    let data = body_of("logs");
    let hollow = [field(1, &[]), field(1, &field(2, &[])), field(1, &field(1, &[]))].concat();
    let body = [hollow.clone(), data.clone(), hollow, data.clone()].concat();
    assert_eq!(send("logs", PROTOBUF, body).await, 200);
    let record = json!({"severityText": "x"});
    let body = json!({"resourceLogs": [{}, {"scopeLogs": []}, {"scopeLogs": [
        {}, {"logRecords": [{}]}, {"logRecords": [record]}, {"scope": {"name": "s"}}]}, {}]});
    assert_eq!(send("logs", "application/json", body.to_string().into_bytes()).await, 200);
    {
        let received = collector.received.lock();
        assert_eq!(received.logs[0].resource_logs.len(), 2);
        let (_, body) = &received.json[0];
        let parts = body["resourceLogs"].as_array().unwrap();
        assert_eq!(parts.len(), 1, "{body}");
        assert_eq!(parts[0]["scopeLogs"], json!([{"logRecords": [record]}]), "{body}");
    }
    // The sender in each of 900 resources takes more than the bound of a body; 1001 are too many.
    let (one, json) = (field(1, &field(2, &field(2, &field(3, b"x")))), "application/json");
    let one_json = r#"{"scopeLogs":[{"logRecords":[1]}]}"#;
    let list = |n: usize| {
        format!(r#"{{"resourceLogs":[{}{one_json}]}}"#, format!("{one_json},").repeat(n - 1))
    };
    assert_eq!(send("logs", PROTOBUF, one.repeat(900)).await, 413);
    assert_eq!(send("logs", json, list(900).into_bytes()).await, 413);
    let large = relaying(&collector, &[]).await;
    for (kind, body) in [(PROTOBUF, one.repeat(1001)), (json, list(1001).into_bytes())] {
        let answer = post(&large, "logs", kind, body).bearer_auth(&large.key).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{kind}");
    }
}
