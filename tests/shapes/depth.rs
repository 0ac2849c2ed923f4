//! Values that nest 10 000 levels, in every member that nobody reads: a reply reaches the client of
//! each format, and its bill is exact. What a model writes is not a failure of its provider.

use serde_json::json;

use crate::proxy::fixture::{FORMATS, Fixture, path, request};

/// What the providers report: input and output.
const USAGE: [u64; 2] = [100, 900];

/// A whole reply and the events of a stream of each format; `~` stands for the deep value.
fn bodies(provider: &str) -> (&'static str, Vec<&'static str>) {
    match provider {
        "native" => (
            r#"{"id":"m1","type":"message","role":"assistant","model":"m","x":~,"content":[{"type":"tool_use","id":"t","name":"f","input":{"v":~}},{"type":"x","x":~}],"stop_reason":"tool_use","stop_sequence":null,"container":~,"usage":{"x":~,"input_tokens":100,"output_tokens":900}}"#,
            vec![
                r#"{"type":"message_start","x":~,"message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[],"x":~,"usage":{"input_tokens":100,"output_tokens":1,"x":~}}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"v":~}}}"#,
                r#"{"type":"content_block_stop","index":0,"x":~}"#,
                r#"{"type":"message_delta","x":~,"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"x":~,"output_tokens":900}}"#,
                r#"{"type":"message_stop"}"#,
            ],
        ),
        "chat-compatible" => (
            r#"{"id":"c","object":"chat.completion","created":1,"model":"m","x":~,"choices":[{"index":0,"logprobs":~,"message":{"role":"assistant","content":"a","x":~,"tool_calls":[{"id":"t","type":"function","x":~,"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"x":~,"prompt_tokens":100,"completion_tokens":900,"total_tokens":1000}}"#,
            vec![
                r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","x":~,"choices":[{"index":0,"logprobs":~,"delta":{"role":"assistant","content":"a","x":~},"finish_reason":null}]}"#,
                r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"x":~,"delta":{},"finish_reason":"stop"}]}"#,
                r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","x":~,"choices":[],"usage":{"x":~,"prompt_tokens":100,"completion_tokens":900,"total_tokens":1000}}"#,
                "[DONE]",
            ],
        ),
        "responses" => (RESPONSE, vec![CREATED, ITEM, COMPLETED]),
        _ => (ALT, vec![ALT]),
    }
}

const RESPONSE: &str = r#"{"id":"r1","object":"response","created_at":1,"status":"completed","model":"m","error":null,"metadata":~,"output":[{"type":"web_search_call","id":"w","status":"completed","action":~},{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[~]}]}],"usage":{"x":~,"input_tokens":100,"output_tokens":900,"total_tokens":1000}}"#;
const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"r1","object":"response","status":"in_progress","metadata":~,"output":[],"usage":null}}"#;
const ITEM: &str = r#"{"type":"response.output_text.delta","sequence_number":1,"item_id":"m1","output_index":0,"content_index":0,"delta":"a","logprobs":~}"#;
const COMPLETED: &str = r#"{"type":"response.completed","sequence_number":9,"x":~,"response":{"id":"r1","object":"response","created_at":1,"status":"completed","model":"m","error":null,"metadata":~,"output":[{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[~]}]}],"usage":{"x":~,"input_tokens":100,"output_tokens":900,"total_tokens":1000}}}"#;
const ALT: &str = r#"{"x":~,"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{"v":~}}},{"executableCode":~}]},"finishReason":"STOP","index":0,"groundingMetadata":{"x":~}}],"usageMetadata":{"x":~,"promptTokenCount":100,"candidatesTokenCount":900,"totalTokenCount":1000}}"#;

/// Lists and objects in turns, 10 000 levels.
fn deep() -> String {
    format!("{}\"]}}[{{\\\"\"{}", "[{\"a\":".repeat(5000), "}]".repeat(5000))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deep_value_in_a_reply_costs_neither_the_reply_nor_the_bill_nor_the_circuit() {
    let deep = deep();
    for provider in FORMATS {
        let fixture = Fixture::bare(&[]).await;
        // The circuit opens at the first failure.
        let fields = json!({"circuit_breaker_failure_threshold": 1});
        fixture.gateway.provider(provider, &fixture.upstream.url, fields).await;
        let (whole, events) = bodies(provider);
        let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let mut asked = Vec::new();
        for (stream, body) in [(false, whole), (true, &*stream)] {
            for chunking in [json!("whole"), json!({"bytes": 1000})] {
                let body = body.replace('~', &deep);
                let reply = json!({"body": body, "chunking": chunking, "strict": false});
                fixture.upstream.default(reply).await;
                for client in FORMATS {
                    let ask = fixture.post(path(client, stream), &request(client, stream));
                    let answer = ask.send().await.unwrap();
                    let status = answer.status().as_u16();
                    let text = answer.text().await.unwrap();
                    let what = format!("{client} from {provider}, streamed: {stream}");
                    assert_eq!(status, 200, "{what}: {}", &text[..text.len().min(300)]);
                    // The arguments that the model wrote arrive.
                    if matches!(provider, "native" | "alt-cli") {
                        assert!(text.len() > 30_000, "{what}: {} bytes", text.len());
                    }
                    asked.push(what);
                }
            }
        }
        let rows = fixture.gateway.logs(asked.len()).await;
        for (row, what) in rows.iter().rev().zip(asked) {
            let billed = [&row["inputTokens"], &row["outputTokens"]].map(|n| n.as_u64().unwrap());
            assert_eq!((billed, &row["estimated"]), (USAGE, &json!(false)), "{what}: {row}");
            assert_eq!(row["outcome"], "completed", "{what}: {row}");
        }
    }
}
