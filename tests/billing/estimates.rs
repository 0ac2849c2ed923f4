//! What is billed if a provider's figures are missing or absurd: the same in the record, the
//! counters, the metrics, and the reply that a client of another format gets.

use serde_json::{Value, json};

use super::{figures, with};
use crate::proxy::fixture::{FORMATS, path, request};

/// The figures in a complete reply: input and output.
fn reported(format: &str, reply: &Value) -> [u64; 2] {
    let (usage, names) = match format {
        "native" | "responses" => (&reply["usage"], ["input_tokens", "output_tokens"]),
        "chat-compatible" => (&reply["usage"], ["prompt_tokens", "completion_tokens"]),
        _ => (&reply["usageMetadata"], ["promptTokenCount", "candidatesTokenCount"]),
    };
    names.map(|name| usage[name].as_u64().unwrap_or_else(|| panic!("{name} in {reply}")))
}

/// The last reply that a stream contains, or what is like one.
fn last_with_usage(format: &str, stream: &str) -> Value {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let of = |event: Value| if format == "responses" { event["response"].clone() } else { event };
    let name = if format == "alt-cli" { "usageMetadata" } else { "usage" };
    events.map(of).rfind(|event| event[name].is_object()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converted_reply_without_figures_reports_the_estimate_that_is_billed() {
    let fixture = with("chat-compatible").await;
    let text = "hello ".repeat(200);
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let stream = [
        chunk(json!({"role": "assistant", "content": text}), Value::Null),
        chunk(json!({}), json!("stop")),
        "data: [DONE]\n\n".to_owned(),
    ];
    let whole = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
            "finish_reason": "stop"}]});
    let mut asked = 0;
    for client in FORMATS.into_iter().filter(|format| *format != "chat-compatible") {
        for streams in [true, false] {
            let (raw, kind) = match streams {
                true => (stream.concat(), "text/event-stream"),
                false => (whole.to_string(), "application/json"),
            };
            fixture
                .upstream
                .default(json!({"body": raw, "content_type": kind, "strict": false}))
                .await;
            let body = request(client, streams);
            let answer = fixture.post(path(client, streams), &body).send().await.unwrap();
            let answer = answer.text().await.unwrap();
            let reply = match streams {
                true => last_with_usage(client, &answer),
                false => serde_json::from_str(&answer).unwrap(),
            };
            asked += 1;
            let row = &fixture.gateway.logs(asked).await[0];
            assert_eq!(row["estimated"], true, "{client} {streams}");
            let [input, output, ..] = figures(row);
            assert!(input > 0 && output > 300, "{client} {streams}: {row}");
            assert_eq!(reported(client, &reply), [input, output], "{client} {streams}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_absurd_figure_is_billed_by_an_estimate_in_record_and_counters() {
    let fixture = with("native").await;
    let reply = json!({"id": "m", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn",
        "usage": {"input_tokens": u64::MAX, "output_tokens": 5}});
    fixture
        .upstream
        .default(
            json!({"body": reply.to_string(), "content_type": "application/json", "strict": false}),
        )
        .await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!(row["estimated"], true, "{row}");
    let [input, output, ..] = figures(row);
    assert!((1..100).contains(&input) && output == 5, "{row}");
    let of = json!({"userId": fixture.user_id});
    let counted = fixture.gateway.admin("users/getUserLimitUsage", of).await;
    assert_eq!(counted["costTotal"]["current"], row["costUsd"], "{counted}");
}
