//! The spans of a request, as a collector gets them.

use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::json;

use super::check::attribute;
use super::collector::Collector;
use super::traced;
use crate::proxy::fixture::{Fixture, request};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn of_kind(spans: &[Span], kind: SpanKind) -> Vec<&Span> {
    let mut found: Vec<&Span> = spans.iter().filter(|span| span.kind() == kind).collect();
    found.sort_by_key(|span| span.start_time_unix_nano);
    found
}

fn get(span: &Span, name: &str) -> String {
    attribute(&span.attributes, name).unwrap_or_else(|| panic!("{name} is not in {span:#?}"))
}

/// A streamed request whose first attempt fails, from a client with a trace.
async fn one_failover(fixture: &Fixture) {
    fixture
        .gateway
        .provider("native", &fixture.upstream.url, json!({"name": "second", "priority": 9}))
        .await;
    let usage = json!({"input": 100, "output": 20, "cache_read": 1000, "cache_write_5m": 30, "cache_write_1h": 3});
    fixture.upstream.default(json!({"usage": usage, "first_byte_ms": 30, "status": 200})).await;
    // The second answer is the second provider's.
    fixture.upstream.script(json!([{"status": 529}])).await;
    let mut body = request("native", true);
    body["temperature"] = json!(0.5);
    body["stop_sequences"] = json!(["END"]);
    let answer = fixture
        .post("/v1/messages", &body)
        .header("traceparent", format!("00-{TRACE}-{PARENT}-01"))
        .header("tracestate", "vendor=1")
        .header("x-session-id", "conversation-7")
        .header("user-agent", "agent/1")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    answer.text().await.unwrap();
}

fn check_failover(fixture: &Fixture, spans: &[Span]) {
    let servers = of_kind(spans, SpanKind::Server);
    let [server] = servers[..] else { panic!("{servers:#?}") };
    assert_eq!(
        (server.name.as_str(), hex::encode(&server.trace_id)),
        ("POST /v1/messages", TRACE.to_owned())
    );
    assert_eq!(
        (hex::encode(&server.parent_span_id), server.trace_state.as_str()),
        (PARENT.to_owned(), "vendor=1")
    );
    assert_eq!(server.flags & 0x300, 0x300, "the parent is remote");
    assert_eq!(server.status, None);
    for (name, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/v1/messages"),
        ("url.path", "/v1/messages"),
        ("url.scheme", "http"),
        ("http.response.status_code", "200"),
        ("network.protocol.version", "1.1"),
        ("server.address", "127.0.0.1"),
        ("client.address", "127.0.0.1"),
        ("user_agent.original", "agent/1"),
        ("user.name", "ada"),
        ("gen_ai.conversation.id", "conversation-7"),
        ("tollgate.outcome", "completed"),
        ("tollgate.attempts", "2"),
    ] {
        assert_eq!(get(server, name), value, "{name}");
    }
    assert_eq!(get(server, "server.port"), fixture.gateway.proxy.rsplit_once(':').unwrap().1);
    let names: Vec<&str> = server.events.iter().map(|event| event.name.as_str()).collect();
    for stage in
        ["tollgate.identified", "tollgate.body_read", "tollgate.screened", "tollgate.admitted"]
    {
        assert!(names.contains(&stage), "{names:?}");
    }
    let steps: Vec<String> = server
        .events
        .iter()
        .filter_map(|event| attribute(&event.attributes, "tollgate.decision.step"))
        .collect();
    assert!(
        steps.contains(&"attempt_failed".to_owned()) && steps.contains(&"succeeded".to_owned()),
        "{steps:?}"
    );
    check_attempts(fixture, spans, server);
}

fn check_attempts(fixture: &Fixture, spans: &[Span], server: &Span) {
    let clients = of_kind(spans, SpanKind::Client);
    let [failed, done] = clients[..] else { panic!("{clients:#?}") };
    for span in [failed, done] {
        assert_eq!((span.name.as_str(), &span.parent_span_id), ("chat m", &server.span_id));
        assert_eq!(span.trace_id, server.trace_id);
        let inside = span.start_time_unix_nano >= server.start_time_unix_nano
            && span.end_time_unix_nano <= server.end_time_unix_nano;
        assert!(inside, "{span:#?} is not within {server:#?}");
        for (name, value) in [
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "anthropic"),
            ("gen_ai.request.model", "m"),
            ("gen_ai.request.stream", "true"),
            ("gen_ai.request.max_tokens", "100"),
            ("gen_ai.request.temperature", "0.5"),
            ("gen_ai.request.stop_sequences", "END"),
            ("gen_ai.conversation.id", "conversation-7"),
            ("server.address", "127.0.0.1"),
        ] {
            assert_eq!(get(span, name), value, "{name}");
        }
        assert_eq!(get(span, "server.port"), fixture.upstream.url.rsplit_once(':').unwrap().1);
    }
    assert_eq!(
        (get(failed, "error.type"), get(failed, "tollgate.provider.name")),
        ("529".into(), "first".into())
    );
    assert_eq!(
        (
            failed.status.as_ref().unwrap().code,
            attribute(&failed.attributes, "gen_ai.usage.input_tokens")
        ),
        (2, None)
    );
    assert!(failed.end_time_unix_nano <= done.start_time_unix_nano);
    assert_eq!((get(done, "tollgate.provider.name"), &done.status), ("second".into(), &None));
    // Anthropic's own figure for the input is without cached tokens.
    for (name, value) in [
        ("gen_ai.usage.input_tokens", "1133"),
        ("gen_ai.usage.output_tokens", "20"),
        ("gen_ai.usage.cache_read.input_tokens", "1000"),
        ("gen_ai.usage.cache_creation.input_tokens", "33"),
        ("http.response.status_code", "200"),
    ] {
        assert_eq!(get(done, name), value, "{name}");
    }
    let first_chunk: f64 = get(done, "gen_ai.response.time_to_first_chunk").parse().unwrap();
    let took =
        Duration::from_nanos(done.end_time_unix_nano - done.start_time_unix_nano).as_secs_f64();
    assert!((0.03..=took).contains(&first_chunk), "{first_chunk} of {took}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_a_server_span_with_a_client_span_for_each_attempt() {
    for grpc in [false, true] {
        let collector = if grpc { Collector::grpc().await } else { Collector::http().await };
        let protocol = if grpc { "grpc" } else { "http/protobuf" };
        let env = [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20cDpz,x-team=ai"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ("OTEL_SERVICE_NAME", "gate"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test%20lab"),
        ];
        let fixture = traced_once(&collector.url, &env).await;
        one_failover(&fixture).await;
        let spans = collector.spans(|spans| spans.len() >= 3).await;
        check_failover(&fixture, &spans);
        let seen = fixture.upstream.requests().await;
        let clients = of_kind(&spans, SpanKind::Client);
        for (request, span) in seen.iter().zip(clients) {
            let headers = &request["headers"];
            let context = format!("00-{TRACE}-{}-01", hex::encode(&span.span_id));
            assert!(headers["traceparent"].to_string().contains(&context), "{context}: {headers}");
            assert!(headers["tracestate"].to_string().contains("vendor=1"), "{headers}");
        }
        let received = collector.received.lock();
        let headers = received.headers.last().unwrap();
        assert_eq!(
            (&headers["authorization"], &headers["x-team"]),
            (&"Basic cDpz".parse().unwrap(), &"ai".parse().unwrap())
        );
        let coding = if grpc { "grpc-encoding" } else { "content-encoding" };
        assert_eq!(headers[coding], "gzip");
        let resource = received.traces[0].resource_spans[0].resource.as_ref().unwrap();
        let of = |name| attribute(&resource.attributes, name).unwrap();
        assert_eq!(
            (of("service.name"), of("deployment.environment.name")),
            ("gate".into(), "test lab".into())
        );
        assert_eq!(of("service.version"), env!("CARGO_PKG_VERSION"));
    }
}

/// As [`traced`], with a provider that is asked once.
async fn traced_once(endpoint: &str, more: &[(&str, &str)]) -> Fixture {
    let mut env = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint), ("OTEL_TRACES_SAMPLER_ARG", "1")];
    env.extend_from_slice(more);
    let fixture = Fixture::bare(&env).await;
    let fields = json!({"name": "first", "priority": 1, "max_retry_attempts": 1});
    fixture.gateway.provider("native", &fixture.upstream.url, fields).await;
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_in_which_a_request_ends_has_its_spans() {
    let collector = Collector::http().await;
    let fixture = traced(&collector.url, &[]).await;
    // Refused by the gateway: no attempt.
    let mut body = request("native", false);
    body["model"] = json!("nobody-has-it");
    let never = json!({"name": "other", "allowed_models": ["elsewhere"], "priority": 1});
    fixture.gateway.provider("chat-compatible", &fixture.upstream.url, never).await;
    fixture.upstream.script(json!([{"status": 400}])).await;
    // Refused by the provider.
    assert_eq!(fixture.ask().send().await.unwrap().status(), 400);
    // A listing, and no caller.
    let list = fixture
        .gateway
        .client
        .get(format!("{}/v1/models", fixture.gateway.proxy))
        .bearer_auth(&fixture.key);
    assert_eq!(list.send().await.unwrap().status(), 200);
    let unknown = fixture
        .gateway
        .client
        .post(format!("{}/v1/messages", fixture.gateway.proxy))
        .bearer_auth("sk-none");
    assert_eq!(unknown.json(&body).send().await.unwrap().status(), 401);
    let nowhere = fixture.gateway.client.post(format!("{}/v1/nowhere", fixture.gateway.proxy));
    assert_eq!(nowhere.send().await.unwrap().status(), 404);
    let spans = collector.spans(|spans| spans.len() >= 5).await;
    let found: Vec<(String, String)> = of_kind(&spans, SpanKind::Server)
        .iter()
        .map(|span| (span.name.clone(), get(span, "http.response.status_code")))
        .collect();
    let wanted = [
        ("POST /v1/messages", "400"),
        ("GET /v1/models", "200"),
        ("POST /v1/messages", "401"),
        ("POST", "404"),
    ];
    assert_eq!(found, wanted.map(|(name, status)| (name.to_owned(), status.to_owned())));
    let clients = of_kind(&spans, SpanKind::Client);
    assert_eq!((clients.len(), get(clients[0], "error.type")), (1, "400".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_behind_tls_is_verified_over_both_protocols() {
    let file = |name: &str| format!("{}/tests/admin/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    for grpc in [false, true] {
        let collector = if grpc { Collector::grpc().await } else { Collector::http().await };
        let url = collector.behind_tls(&file("cert.pem"), &file("key.pem")).await;
        let protocol = if grpc { "grpc" } else { "http/protobuf" };
        // Without the authority nothing is sent, and the log says why.
        let refused = traced(&url, &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)]).await;
        assert_eq!(refused.ask().send().await.unwrap().status(), 200);
        refused.gateway.log_shows("the collector does not take telemetry").await;
        assert!(collector.received.lock().traces.is_empty());
        let authority = file("cert.pem");
        let env = [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", &authority),
        ];
        let fixture = traced(&url, &env).await;
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        collector.spans(|spans| spans.len() >= 2).await;
    }
}
