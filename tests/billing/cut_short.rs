//! A stream that is cut just before its figures is also billed for invisible reasoning.

use futures_util::StreamExt;
use serde_json::json;

use super::{events, figures, with};
use crate::proxy::fixture::{FORMATS, path, request};

/// The provider's stream before it goes silent, and the minimum output and reasoning that must be
/// billed.
fn cases() -> Vec<(&'static str, String, u64, u64)> {
    let sealed = "A".repeat(16_000);
    let arguments = "y".repeat(3_600);
    vec![
        (
            "native",
            events(&[
                r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1000,"output_tokens":7}}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
                &format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"signature_delta","signature":"{sealed}"}}}}"#
                ),
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
                r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"marker"}}"#,
            ]),
            3_000,
            3_000,
        ),
        (
            "responses",
            events(&[
                r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[],"usage":null}}"#,
                r#"{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
                r#"{"type":"response.output_item.done","sequence_number":2,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
                r#"{"type":"response.output_item.added","sequence_number":3,"output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f","arguments":""}}"#,
                &format!(
                    r#"{{"type":"response.function_call_arguments.delta","sequence_number":4,"output_index":1,"item_id":"fc_1","delta":"{arguments}"}}"#
                ),
                r#"{"type":"response.output_item.done","sequence_number":5,"output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f","arguments":""}}"#,
                r#"{"type":"response.output_item.added","sequence_number":6,"output_index":2,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}"#,
                r#"{"type":"response.output_text.delta","sequence_number":7,"output_index":2,"item_id":"msg_1","content_index":0,"delta":"marker"}"#,
            ]),
            2_024,
            1_024,
        ),
        (
            "chat-compatible",
            events(&[
                r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"hm"},"finish_reason":null}],"usage":{"prompt_tokens":1000,"completion_tokens":5000,"completion_tokens_details":{"reasoning_tokens":4900}}}"#,
                r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"marker"},"finish_reason":null}]}"#,
            ]),
            5_000,
            4_900,
        ),
        (
            "alt-cli",
            events(&[
                r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true}]},"index":0}],"usageMetadata":{"promptTokenCount":1000,"thoughtsTokenCount":6000,"totalTokenCount":7000}}"#,
                r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"marker"}]},"index":0}]}"#,
            ]),
            6_000,
            6_000,
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_reasoning_is_billed_when_the_client_leaves_before_the_figures() {
    for (provider, said, output, reasoning) in cases() {
        let fixture = with(provider).await;
        // Only its first half is played: the second has no meaning, and the same length.
        let body = format!("{said}: {}\n\n", "x".repeat(said.len()));
        fixture.upstream.default(json!({"body": body, "stall_after": 1, "strict": false})).await;
        for client in FORMATS {
            let answer =
                fixture.post(path(client, true), &request(client, true)).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{client} from {provider}");
            let mut body = answer.bytes_stream();
            let mut seen = String::new();
            while !seen.contains("marker") {
                seen.push_str(&String::from_utf8_lossy(&body.next().await.unwrap().unwrap()));
            }
        }
        for row in fixture.gateway.logs(FORMATS.len()).await {
            let what = format!("from {provider}: {row}");
            assert_eq!(
                (&row["outcome"], &row["estimated"]),
                (&json!("client_aborted"), &json!(true)),
                "{what}"
            );
            let [_, billed, thought, ..] = figures(&row);
            assert!((output..output + 10).contains(&billed), "{billed} of {output}, {what}");
            assert!(
                (reasoning..reasoning + 10).contains(&thought),
                "{thought} of {reasoning}, {what}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_that_came_are_final_though_the_client_left_before_the_end() {
    let fixture = with("native").await;
    let said = events(&[
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1000,"output_tokens":7}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"marker"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4321}}"#,
    ]);
    let body = format!("{said}: {}\n\n", "x".repeat(said.len()));
    fixture.upstream.default(json!({"body": body, "stall_after": 1, "strict": false})).await;
    let mut body = fixture.ask_stream().send().await.unwrap().bytes_stream();
    let mut seen = String::new();
    while !seen.contains("4321") {
        seen.push_str(&String::from_utf8_lossy(&body.next().await.unwrap().unwrap()));
    }
    drop(body);
    let row = fixture.gateway.logs(1).await.remove(0);
    assert_eq!(
        (figures(&row)[..2].to_vec(), &row["estimated"]),
        (vec![1000, 4321], &json!(false)),
        "{row}"
    );
}
