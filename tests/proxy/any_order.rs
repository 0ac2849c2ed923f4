//! Chat-compatible streams whose fields come in any order, through the gateway, for clients of
//! every format: whole, complete and billed as one reply.

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat;

use super::fixture::{FORMATS, Fixture, path, request};
use crate::convert::any_order::said;

fn stream(deltas: &[Value]) -> Value {
    let chunk =
        |delta: &Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
    let mut body: String = deltas.iter().map(chunk).collect();
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}});
    body.push_str(&format!("data: {end}\n\ndata: [DONE]\n\n"));
    json!({"status": 200, "content_type": "text/event-stream", "body": body})
}

fn piece(call: Value) -> Value {
    json!({"tool_calls": [call]})
}

fn format(name: &str) -> WireFormat {
    WireFormat::ALL.into_iter().find(|format| format.as_str() == name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_text_between_its_pieces_arrives_whole_at_every_client() {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("chat-compatible", &fixture.upstream.url, json!({})).await;
    let begin = piece(json!({"index": 0, "id": "call_1", "type": "function",
        "function": {"name": "", "arguments": ""}}));
    let more = |function: Value| piece(json!({"index": 0, "function": function}));
    for (member, text) in [("content", "between"), ("reasoning_content", "")] {
        fixture
            .upstream
            .default(stream(&[
                begin.clone(),
                more(json!({"name": "re"})),
                more(json!({"name": "ad", "arguments": "{\"pa"})),
                json!({member: "between"}),
                more(json!({"arguments": "th\":\"a\"}"})),
            ]))
            .await;
        for client in FORMATS {
            let mut body = request(client, true);
            if client == "native" {
                body["max_tokens"] = json!(4000);
                body["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
            }
            let answer = fixture.post(path(client, true), &body).send().await.unwrap();
            let (status, bytes) = (answer.status(), answer.bytes().await.unwrap());
            assert_eq!(status, 200, "{client}");
            let got = said(format(client), &bytes);
            assert_eq!(got.2, ["read({\"path\":\"a\"})"], "{client} {member}");
            assert_eq!(got.0, text, "{client} {member}");
        }
    }
    for row in fixture.gateway.logs(8).await {
        assert_eq!(
            (&row["outcome"], &row["outputTokens"], &row["attempts"]),
            (&json!("completed"), &json!(20), &json!(1)),
            "{row}"
        );
    }
}

/// Content that nothing announced: the text, or an error of another format; never an empty success.
#[tokio::test(flavor = "multi_thread")]
async fn native_deltas_without_a_start_are_not_lost() {
    let fixture = Fixture::bare(&[]).await;
    let no_circuit = json!({"circuit_breaker_failure_threshold": 0, "max_retry_attempts": 1});
    fixture.gateway.provider("native", &fixture.upstream.url, no_circuit).await;
    let start = json!({"type": "message_start", "message": {"id": "m", "type": "message",
        "role": "assistant", "content": [], "usage": {"input_tokens": 10, "output_tokens": 1}}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 20}});
    let body = |delta: Value| -> String {
        let delta = json!({"type": "content_block_delta", "index": 0, "delta": delta});
        let stop = json!({"type": "content_block_stop", "index": 0});
        let events = [start.clone(), delta, stop, end.clone(), json!({"type": "message_stop"})];
        let write = |event: &Value| {
            format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
        };
        events.iter().map(write).collect()
    };
    for (delta, status) in [
        (json!({"type": "text_delta", "text": "here"}), 200),
        (json!({"type": "input_json_delta", "partial_json": "{}"}), 502),
    ] {
        fixture
            .upstream
            .default(json!({"status": 200, "content_type": "text/event-stream",
                "body": body(delta)}))
            .await;
        for client in FORMATS.into_iter().filter(|client| *client != "native") {
            let answer =
                fixture.post(path(client, true), &request(client, true)).send().await.unwrap();
            let (got, text) = (answer.status().as_u16(), answer.text().await.unwrap());
            assert_eq!(got, status, "{client}: {text}");
            assert_eq!(text.contains("here"), status == 200, "{client}: {text}");
        }
    }
}
