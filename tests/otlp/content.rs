//! Prompts and replies are in spans only if a setting says so.

use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};

use super::check::attribute;
use super::collector::{Collector, Received};
use super::traced;
use crate::proxy::fixture::saying;

const PROMPT: &str = "the secret plan of the prompt";
const REPLY: &str = "the secret plan of the reply";

/// How many access lines the collector has.
fn access_lines(received: &Received) -> usize {
    let scopes = received
        .logs
        .iter()
        .flat_map(|batch| &batch.resource_logs)
        .flat_map(|part| &part.scope_logs);
    let lines = scopes.flat_map(|scope| &scope.log_records);
    lines
        .filter(|line| attribute(&line.attributes, "log.target").as_deref() == Some("access"))
        .count()
}

/// No span, log line or metric contains the prompt or the reply.
fn hold_no_content(received: &Received) {
    let holds =
        |body: &Vec<u8>, text: &str| body.windows(text.len()).any(|part| part == text.as_bytes());
    let spans: Vec<Vec<u8>> = received.traces.iter().map(prost::Message::encode_to_vec).collect();
    let logs: Vec<Vec<u8>> = received.logs.iter().map(prost::Message::encode_to_vec).collect();
    let metrics: Vec<Vec<u8>> =
        received.metrics.iter().map(prost::Message::encode_to_vec).collect();
    for text in [PROMPT, REPLY] {
        assert!(!spans.iter().chain(&metrics).chain(&logs).any(|body| holds(body, text)), "{text}");
    }
}

/// The spans of the two requests that were answered contain prompt and reply.
fn hold_the_content(spans: &[Span]) {
    let done: Vec<_> = spans
        .iter()
        .filter(|span| attribute(&span.attributes, "gen_ai.output.messages").is_some())
        .collect();
    assert_eq!(done.len(), 2, "{spans:#?}");
    for span in done {
        let json = |name| -> Value {
            serde_json::from_str(&attribute(&span.attributes, name).unwrap()).unwrap()
        };
        let input = json!([{"role": "user", "parts": [{"type": "text", "content": PROMPT}]}]);
        assert_eq!(json("gen_ai.input.messages"), input);
        let output = json("gen_ai.output.messages");
        assert_eq!(output[0]["parts"], json!([{"type": "text", "content": REPLY}]));
        assert_eq!(output[0]["finish_reason"], "stop");
        assert_eq!(attribute(&span.attributes, "gen_ai.response.finish_reasons").unwrap(), "stop");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_and_replies_are_sent_only_if_that_is_set() {
    for content in [false, true] {
        let collector = Collector::http().await;
        let set = content.to_string();
        let env = [
            ("TOLLGATE_TELEMETRY_OTLP_CONTENT", set.as_str()),
            ("TOLLGATE_TELEMETRY_OTLP_LOGS", "true"),
            ("TOLLGATE_TELEMETRY_OTLP_METRICS", "true"),
            ("TOLLGATE_TELEMETRY_OTLP_METRICS_INTERVAL", "1s"),
        ];
        let fixture = traced(&collector.url, &env).await;
        fixture.upstream.default(json!({"text": REPLY})).await;
        // Providers' errors repeat what they do not like.
        let error =
            json!({"status": 400, "error": {"message": format!("I do not like: {PROMPT}")}});
        fixture.upstream.script(json!([{}, {}, error])).await;
        for (stream, status) in [(false, 200), (true, 200), (false, 400)] {
            let answer = fixture
                .post("/v1/messages", &saying("native", stream, PROMPT))
                .send()
                .await
                .unwrap();
            assert_eq!(answer.status(), status);
            answer.text().await.unwrap();
        }
        let spans = collector.spans(|spans| spans.len() == 6).await;
        collector
            .shows(|received| {
                (!received.metrics.is_empty() && access_lines(received) == 3).then_some(())
            })
            .await;
        if content {
            hold_the_content(&spans);
        } else {
            hold_no_content(&collector.received.lock());
        }
    }
}
