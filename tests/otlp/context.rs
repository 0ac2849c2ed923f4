//! The trace context: which requests are sampled, and what providers get.

use serde_json::Value;

use super::collector::Collector;
use super::traced;
use crate::proxy::fixture::Fixture;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Asks with a client's context; the headers that the provider got.
async fn propagated(fixture: &Fixture, parent: Option<&str>) -> (Option<String>, Option<String>) {
    let mut request = fixture.ask().header("tracestate", "vendor=1");
    if let Some(parent) = parent {
        request = request.header("traceparent", parent);
    }
    assert_eq!(request.send().await.unwrap().status(), 200);
    let seen = fixture.upstream.requests().await.pop().unwrap();
    let header = |name: &str| match &seen["headers"][name] {
        Value::Null => None,
        Value::Array(values) => Some(values[0].as_str().unwrap().to_owned()),
        value => Some(value.as_str().unwrap().to_owned()),
    };
    (header("traceparent"), header("tracestate"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_not_sampled_has_no_spans_and_its_trace_goes_on() {
    let collector = Collector::http().await;
    let fixture = traced(&collector.url, &[]).await;
    let parent = format!("00-{TRACE}-b7ad6b7169203331-00");
    let (sent, state) = propagated(&fixture, Some(&parent)).await;
    let sent = sent.unwrap();
    assert!(
        sent.starts_with(&format!("00-{TRACE}-")) && sent.ends_with("-00") && sent != parent,
        "{sent}"
    );
    assert_eq!(state.as_deref(), Some("vendor=1"));
    // Malformed: a new trace, and the state goes with the old one.
    let (sent, state) = propagated(&fixture, Some("00-nonsense")).await;
    let sent = sent.unwrap();
    assert!(sent.len() == 55 && sent.ends_with("-01") && !sent.contains(TRACE), "{sent}");
    assert_eq!(state, None);
    let (sent, _) = propagated(&fixture, None).await;
    assert_eq!(sent.unwrap().len(), 55);
    // Of the three requests, the last two.
    let spans = collector.spans(|spans| spans.len() >= 4).await;
    assert_eq!(spans.len(), 4);
    assert!(spans.iter().all(|span| hex::encode(&span.trace_id) != TRACE), "{spans:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn samplers_decide_as_their_names_say() {
    let collector = Collector::http().await;
    for (sampler, ratio, sampled) in [
        ("always_off", "1", [false, false]),
        ("always_on", "0", [true, true]),
        ("parentbased_always_off", "1", [false, true]),
        ("traceidratio", "0", [false, false]),
        ("parentbased_traceidratio", "0", [false, true]),
    ] {
        let env = [("OTEL_TRACES_SAMPLER", sampler), ("OTEL_TRACES_SAMPLER_ARG", ratio)];
        let fixture = traced(&collector.url, &env).await;
        let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
        for (parent, sampled) in [None, Some(parent.as_str())].into_iter().zip(sampled) {
            let (sent, _) = propagated(&fixture, parent).await;
            assert_eq!(sent.unwrap().ends_with("-01"), sampled, "{sampler} {parent:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_do_not_decide_on_sampling() {
    let collector = Collector::http().await;
    let fixture = traced(&collector.url, &[("OTEL_TRACES_SAMPLER_ARG", "0")]).await;
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    let client = &fixture.gateway.client;
    let url = format!("{}/v1/messages", fixture.gateway.proxy);
    let refused = client
        .post(url)
        .bearer_auth("sk-none")
        .header("traceparent", &parent)
        .body("{}")
        .send()
        .await;
    assert_eq!(refused.unwrap().status(), 401);
    assert_eq!(fixture.ask().header("traceparent", &parent).send().await.unwrap().status(), 200);
    // The span of the second request comes alone, although the first was before it.
    let spans = collector.spans(|spans| !spans.is_empty()).await;
    assert_eq!(spans.len(), 2, "{spans:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_get_no_context_if_they_are_not_to() {
    let collector = Collector::http().await;
    let fixture =
        traced(&collector.url, &[("TOLLGATE_TELEMETRY_OTLP_TO_PROVIDERS", "false")]).await;
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    assert_eq!(propagated(&fixture, Some(&parent)).await, (None, None));
    collector.spans(|spans| spans.len() == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_collector_the_clients_context_passes_and_nothing_is_counted() {
    // A standard variable that is set for every process is not a fault without an endpoint.
    let fixture = Fixture::native_with(&[("OTEL_SERVICE_NAME", "everything")]).await;
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    assert_eq!(
        propagated(&fixture, Some(&parent)).await,
        (Some(parent), Some("vendor=1".to_owned()))
    );
    assert_eq!(propagated(&fixture, None).await.0, None);
    let text = fixture
        .gateway
        .client
        .get(format!("{}/metrics", fixture.gateway.metrics))
        .send()
        .await
        .unwrap();
    assert!(!text.text().await.unwrap().contains("tollgate_otlp_exported_total{"));
    let log = fixture.gateway.log_shows("access").await;
    assert!(!log.contains("trace_id"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn access_lines_name_the_trace() {
    let collector = Collector::http().await;
    let fixture = traced(&collector.url, &[("LOG_FORMAT", "json")]).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    let spans = collector.spans(|spans| spans.len() == 2).await;
    let server = spans.iter().find(|span| span.name.starts_with("POST")).unwrap();
    let (trace, span) = (hex::encode(&server.trace_id), hex::encode(&server.span_id));
    fixture.gateway.log_shows(&format!("\"trace_id\":\"{trace}\",\"span_id\":\"{span}\"")).await;
    // And as text.
    let fixture = traced(&collector.url, &[("LOG_FORMAT", "text")]).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    fixture.gateway.log_shows(" trace_id=").await;
}
