//! Replies without anything usable: the same judgement whether they are passed through or
//! converted, whole or streamed. And empty replies that are a model's own end.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, saying};
use crate::support::upstream::Upstream;

/// Two providers of a format: `first` answers what it is told, `second` is healthy.
async fn two_of(format: &str) -> (Fixture, Upstream) {
    let (fixture, second) = (Fixture::bare(&[]).await, Upstream::start().await);
    for (url, priority) in [(&fixture.upstream.url, 0), (&second.url, 5)] {
        let fields = json!({"priority": priority, "max_retry_attempts": 1,
            "circuit_breaker_failure_threshold": 0});
        fixture.gateway.provider(format, url, fields).await;
    }
    second.default(json!({"text": "from the second"})).await;
    (fixture, second)
}

/// Whole bodies and streams with nothing in them.
fn nothing(format: &str) -> (Vec<Value>, Vec<String>) {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9});
    match format {
        "native" => (
            vec![
                json!({"type": "message", "role": "assistant", "content": [],
                    "stop_reason": null, "usage": {"input_tokens": 9, "output_tokens": 0}}),
                json!({"type": "message", "role": "assistant", "content": []}),
            ],
            vec![
                events(&[json!({"type": "message_stop"})]),
                events(&[
                    json!({"type": "message_start", "message": {"content": [],
                        "usage": {"input_tokens": 9, "output_tokens": 0}}}),
                    json!({"type": "message_delta", "delta": {"stop_reason": null},
                        "usage": {"output_tokens": 0}}),
                    json!({"type": "message_stop"}),
                ]),
            ],
        ),
        "responses" => (
            vec![
                json!({"object": "response", "status": "completed", "output": []}),
                json!({"object": "response", "output": []}),
            ],
            vec![events(&[
                json!({"type": "response.created", "response": {"id": "r", "output": []}}),
                json!({"type": "response.completed", "response": {"id": "r",
                    "status": "completed", "output": []}}),
            ])],
        ),
        "chat-compatible" => (
            vec![
                json!({"object": "chat.completion", "choices": []}),
                json!({"object": "chat.completion", "choices": [], "usage": usage}),
                json!({"choices": [{"index": 0, "message": {"role": "assistant"}}]}),
            ],
            vec![
                "data: [DONE]\n\n".to_owned(),
                events(&[json!({"choices": [], "prompt_filter_results": []})]) + "data: [DONE]\n\n",
                events(&[
                    json!({"choices": [{"index": 0, "delta": {"role": "assistant"}}]}),
                    json!({"choices": [], "usage": usage}),
                ]) + "data: [DONE]\n\n",
            ],
        ),
        _ => (
            vec![
                json!({"candidates": []}),
                json!({"usageMetadata": {"promptTokenCount": 9}}),
                json!({"candidates": [{"index": 0}]}),
            ],
            vec![
                events(&[json!({"candidates": []})]),
                events(&[json!({"usageMetadata": {"promptTokenCount": 9}})]),
            ],
        ),
    }
}

fn events(all: &[Value]) -> String {
    all.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn directive(stream: bool, body: &str) -> Value {
    let kind = if stream { "text/event-stream" } else { "application/json" };
    json!({"status": 200, "content_type": kind, "body": body})
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_usable_is_the_providers_failure_passed_through_and_converted() {
    for format in FORMATS {
        let (fixture, second) = two_of(format).await;
        let other = if format == "native" { "chat-compatible" } else { "native" };
        let (whole, streams) = nothing(format);
        let whole = whole.iter().map(|body| (false, body.to_string()));
        let all: Vec<_> = whole.chain(streams.into_iter().map(|body| (true, body))).collect();
        let mut served = 0;
        for (stream, body) in all {
            for client in [format, other] {
                fixture.upstream.default(directive(stream, &body)).await;
                let text = format!("hello {served}");
                let asked = fixture.post(path(client, stream), &saying(client, stream, &text));
                let answer = asked.send().await.unwrap();
                let (status, got) = (answer.status(), answer.text().await.unwrap());
                assert_eq!(status, 200, "{client} from {format}: {body}: {got}");
                served += 1;
                assert_eq!(
                    second.requests().await.len(),
                    served,
                    "{client} from {format}: {body}: {got}"
                );
            }
        }
        for row in fixture.gateway.logs(served).await {
            let chain = row["decisionChain"].to_string();
            assert!(chain.contains("attempt_failed"), "{format}: {row}");
        }
    }
}

/// A model may end its turn, or decline, without a word.
fn empty(format: &str) -> Vec<(bool, String)> {
    let delta = |reason: &str| {
        json!({"type": "message_delta", "delta": {"stop_reason": reason},
            "usage": {"output_tokens": 1}})
    };
    let start = json!({"type": "message_start", "message": {"content": [],
        "usage": {"input_tokens": 9, "output_tokens": 0}}});
    match format {
        "native" => ["end_turn", "refusal"]
            .into_iter()
            .flat_map(|reason| {
                let body = json!({"type": "message", "role": "assistant", "content": [],
                    "stop_reason": reason, "usage": {"input_tokens": 9, "output_tokens": 1}});
                let stream =
                    events(&[start.clone(), delta(reason), json!({"type": "message_stop"})]);
                [(false, body.to_string()), (true, stream)]
            })
            .collect(),
        "responses" => {
            let response = json!({"id": "r", "status": "incomplete", "output": [],
                "incomplete_details": {"reason": "max_output_tokens"}});
            let stream = events(&[json!({"type": "response.incomplete", "response": response})]);
            vec![(false, response.to_string()), (true, stream)]
        }
        "chat-compatible" => {
            let message = json!({"role": "assistant", "content": null});
            let body = json!({"choices": [{"index": 0, "message": message,
                "finish_reason": "content_filter"}]});
            let stream = events(&[
                json!({"choices": [], "prompt_filter_results": []}),
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
                json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 0,
                    "total_tokens": 9}}),
            ]) + "data: [DONE]\n\n";
            vec![(false, body.to_string()), (true, stream)]
        }
        _ => [
            json!({"promptFeedback": {"blockReason": "SAFETY"}}),
            json!({"candidates": [{"finishReason": "STOP"}]}),
        ]
        .iter()
        .flat_map(|body| [(false, body.to_string()), (true, events(std::slice::from_ref(body)))])
        .collect(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_end_of_the_models_own_is_a_reply() {
    for format in FORMATS {
        let (fixture, second) = two_of(format).await;
        let other = if format == "native" { "chat-compatible" } else { "native" };
        for (stream, body) in empty(format) {
            for client in [format, other] {
                fixture.upstream.default(directive(stream, &body)).await;
                let asked = fixture.post(path(client, stream), &saying(client, stream, "hello"));
                let answer = asked.send().await.unwrap();
                let (status, got) = (answer.status(), answer.text().await.unwrap());
                assert_eq!(status, 200, "{client} from {format}: {body}: {got}");
                assert!(!got.is_empty(), "{client} from {format}");
            }
        }
        assert!(second.requests().await.is_empty(), "{format}: no failover");
    }
}

/// A reply of each format.
fn replies() -> [(&'static str, Value); 4] {
    [
        (
            "native",
            json!({"type": "message", "role": "assistant", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "Hi there"}],
            "usage": {"input_tokens": 9, "output_tokens": 2}}),
        ),
        (
            "responses",
            json!({"id": "r", "status": "completed", "output": [{"type": "message",
            "role": "assistant", "content": [{"type": "output_text", "text": "Hi there"}]}],
            "usage": {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}}),
        ),
        (
            "chat-compatible",
            json!({"choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Hi there"}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}}),
        ),
        (
            "alt-cli",
            json!({"candidates": [{"finishReason": "STOP",
            "content": {"parts": [{"text": "Hi there"}]}}], "usageMetadata":
            {"promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 11}}),
        ),
    ]
}

/// RFC 8259 lets a reader ignore a byte order mark.
#[tokio::test(flavor = "multi_thread")]
async fn a_byte_order_mark_before_json_is_ignored() {
    const BOM: &str = "\u{feff}";
    for (format, body) in replies() {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider(format, &fixture.upstream.url, json!({})).await;
        for gzip in [false, true] {
            let directive = json!({"status": 200, "content_type": "application/json",
                "body": format!("{BOM}{body}"), "gzip": gzip});
            fixture.upstream.default(directive).await;
            for client in FORMATS {
                // The client's body has one too.
                let asked = fixture.post(path(client, false), &Value::Null);
                let asked = asked.body(format!("{BOM}{}", saying(client, false, "hello")));
                let answer = asked.send().await.unwrap();
                let (status, got) = (answer.status(), answer.bytes().await.unwrap());
                let text = String::from_utf8_lossy(&got);
                assert_eq!(status, 200, "{client} from {format}: {text}");
                let reply: Value = serde_json::from_slice(&got).unwrap();
                assert!(reply.to_string().contains("Hi there"), "{client} from {format}");
                let sent = fixture.upstream.requests().await.pop().unwrap();
                assert!(sent["body"].is_object(), "{client} to {format}: {sent}");
            }
        }
        for row in fixture.gateway.logs(8).await {
            assert_eq!(
                (&row["inputTokens"], &row["outputTokens"]),
                (&json!(9), &json!(2)),
                "{format}: {row}"
            );
        }
        let error = json!({"error": {"type": "invalid_request_error", "message": "as told",
            "code": "prompt_too_long"}});
        let directive = json!({"status": 400, "content_type": "application/json",
            "body": format!("{BOM}{error}")});
        fixture.upstream.default(directive).await;
        let asked = fixture.post(path(format, false), &saying(format, false, "hello"));
        let answer = asked.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status == 400 && text.contains("as told"), "{format}: {status} {text}");
    }
}
