//! The same provider bytes give the same bill for clients of all formats, streamed or not, however
//! they are cut.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::{events, figures, with};
use crate::proxy::fixture::{FORMATS, Fixture, path, request};

/// A provider's bytes, and the figures that must be billed.
struct Case {
    provider: &'static str,
    stream: bool,
    body: String,
    billed: [u64; 6],
}

const NATIVE: [&str; 6] = [
    r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":9000,"cache_read_input_tokens":500,"cache_creation_input_tokens":70,"cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":40},"output_tokens":800}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    // The forecast was too high in every figure.
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":8000,"cache_read_input_tokens":0,"output_tokens":600,"output_tokens_details":{"thinking_tokens":200}}}"#,
    r#"{"type":"message_stop"}"#,
];

const CHAT: [&str; 4] = [
    r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"he"},"finish_reason":""}],"usage":{"prompt_tokens":50,"completion_tokens":1}}"#,
    r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"llo"},"finish_reason":null}]}"#,
    // Reasoning stands beside the completion's tokens, and the usage in the vendor's own place.
    r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":1000,"completion_tokens":300,"total_tokens":1700,"cache_read_input_tokens":250,"completion_tokens_details":{"reasoning_tokens":400}}}}"#,
    "[DONE]",
];

const RESPONSE: &str = r#"{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","error":null,"output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hello","annotations":[]}]}],"usage":{"input_tokens":1000,"input_tokens_details":{"cached_tokens":400,"cache_write_tokens":300,"cache_write_tokens_details":{"ttl_12h_tokens":200,"ttl_30m_tokens":100}},"output_tokens":120,"output_tokens_details":{"reasoning_tokens":80},"total_tokens":1120}}"#;

const ALT: [&str; 4] = [
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"he"}]},"finishReason":"","index":0}],"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":1,"totalTokenCount":1001}}"#,
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"llo"}]},"finishReason":"FINISH_REASON_UNSPECIFIED","index":0}],"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":2,"totalTokenCount":1002}}"#,
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"!"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":3,"totalTokenCount":1003}}"#,
    r#"{"usageMetadata":{"promptTokenCount":1000,"toolUsePromptTokenCount":60,"cachedContentTokenCount":200,"candidatesTokenCount":300,"thoughtsTokenCount":40,"totalTokenCount":1400}}"#,
];

fn cases() -> Vec<Case> {
    let case = |provider, stream, body: String, billed| Case { provider, stream, body, billed };
    let native_body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":8000,"cache_creation_input_tokens":70,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":40},"output_tokens":600}}"#;
    let chat_body = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":300,"total_tokens":1700,"cached_tokens":250,"completion_tokens_details":{"reasoning_tokens":400}}}"#;
    let completed =
        format!(r#"{{"type":"response.completed","sequence_number":9,"response":{RESPONSE}}}"#);
    let responses = events(&[
        r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[],"usage":null}}"#,
        r#"{"type":"response.output_text.delta","sequence_number":1,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"hello"}"#,
        &completed,
    ]);
    let alt_body = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"hello"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1000,"toolUsePromptTokenCount":60,"cachedContentTokenCount":200,"thoughtsTokenCount":40,"totalTokenCount":1400}}"#;
    vec![
        case("native", true, events(&NATIVE), [8000, 600, 200, 30, 40, 0]),
        case("native", false, native_body.to_owned(), [8000, 600, 0, 30, 40, 0]),
        case("chat-compatible", true, events(&CHAT), [750, 700, 400, 0, 0, 250]),
        case("chat-compatible", false, chat_body.to_owned(), [750, 700, 400, 0, 0, 250]),
        case("responses", true, responses, [300, 120, 80, 100, 200, 400]),
        case("responses", false, RESPONSE.to_owned(), [300, 120, 80, 100, 200, 400]),
        case("alt-cli", true, events(&ALT), [860, 340, 40, 0, 0, 200]),
        case("alt-cli", false, alt_body.to_owned(), [860, 340, 40, 0, 0, 200]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_cost_the_same_for_clients_of_all_formats() {
    let cases = cases();
    for provider in FORMATS {
        let fixture = with(provider).await;
        let mut expected = Vec::new();
        for case in cases.iter().filter(|case| case.provider == provider) {
            for chunking in [json!("whole"), json!({"bytes": 7})] {
                fixture
                    .upstream
                    .default(json!({"body": case.body, "chunking": chunking, "strict": false}))
                    .await;
                for client in FORMATS {
                    ask(&fixture, client, case.stream).await;
                    expected.push((client, case, chunking.clone()));
                }
            }
        }
        let rows = fixture.gateway.logs(expected.len()).await;
        for (row, (client, case, chunking)) in rows.iter().rev().zip(expected) {
            let what =
                format!("{client} from {provider}, streamed {}, {chunking}: {row}", case.stream);
            assert_eq!(figures(row), case.billed, "{what}");
            assert_eq!(
                (&row["estimated"], &row["outcome"]),
                (&json!(false), &json!("completed")),
                "{what}"
            );
        }
    }
}

async fn ask(fixture: &Fixture, client: &str, stream: bool) {
    let answer = fixture.post(path(client, stream), &request(client, stream)).send().await.unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert!(status == 200 && text.contains("he"), "{client} {stream}: {status} {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_behind_a_finish_reason_still_counts() {
    let event = |index: u32, text: &str, reason: &str, output: u32| {
        format!(
            r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"text":"{text}"}}]}},"finishReason":"{reason}","index":{index}}}],"usageMetadata":{{"promptTokenCount":100,"candidatesTokenCount":{output},"totalTokenCount":{}}}}}"#,
            100 + output
        )
    };
    let late = r#"{"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":5000,"totalTokenCount":5100}}"#;
    for (first, rest) in [
        (event(0, "marker", "", 5), event(0, "!", "STOP", 5000)),
        (event(0, "marker", "FINISH_REASON_UNSPECIFIED", 5), event(0, "!", "STOP", 5000)),
        (event(0, "marker", "STOP", 5), event(1, "!", "STOP", 5000)),
        (event(0, "marker", "STOP", 5), late.to_owned()),
    ] {
        let go = Arc::new(Notify::new());
        let url = held_back(events(&[&first]), events(&[&rest]), Arc::clone(&go)).await;
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider("alt-cli", &url, json!({})).await;
        for client in FORMATS {
            let answer =
                fixture.post(path(client, true), &request(client, true)).send().await.unwrap();
            let mut body = answer.bytes_stream();
            let (mut seen, mut released) = (String::new(), false);
            while let Some(piece) = body.next().await {
                seen.push_str(&String::from_utf8_lossy(&piece.unwrap()));
                if !released && seen.contains("marker") {
                    released = true;
                    go.notify_one();
                }
            }
        }
        for row in fixture.gateway.logs(FORMATS.len()).await {
            let what = format!("{first} {rest}: {row}");
            assert_eq!(
                (&figures(&row)[..2], &row["estimated"]),
                (&[100, 5000][..], &json!(false)),
                "{what}"
            );
            assert_eq!(row["outcome"], "completed", "{what}");
        }
    }
}

/// A provider that streams `first` to every request, and `rest` after a signal.
async fn held_back(first: String, rest: String, go: Arc<Notify>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            // The request ends with its JSON: nothing else of it matters here.
            let mut got = Vec::new();
            while !(got.ends_with(b"}") && got.windows(4).any(|w| w == b"\r\n\r\n")) {
                if tcp.read_buf(&mut got).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let _ = tcp.write_all(format!("{head}{first}").as_bytes()).await;
            go.notified().await;
            let _ = tcp.write_all(rest.as_bytes()).await;
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_leaves_the_connection_open_behind_its_figures_has_answered() {
    let fixture = Fixture::bare(&[]).await;
    let fields = json!({"streaming_idle_timeout_ms": 300, "circuit_breaker_failure_threshold": 0});
    fixture.gateway.provider("alt-cli", &fixture.upstream.url, fields).await;
    fixture
        .upstream
        .default(json!({"events": 3, "stall_after": 3, "usage": {"input": 100, "output": 500}}))
        .await;
    for client in FORMATS {
        let answer = fixture.post(path(client, true), &request(client, true)).send().await.unwrap();
        let text = answer.text().await.unwrap();
        assert!(!text.contains("\"error\":{"), "{client}: {text}");
    }
    for row in fixture.gateway.logs(FORMATS.len()).await {
        assert_eq!(
            (&figures(&row)[..2], &row["outcome"]),
            (&[100, 500][..], &json!("completed")),
            "{row}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converted_reply_reports_the_billed_usage() {
    let fixture = with("chat-compatible").await;
    let body = &cases()[3].body;
    fixture.upstream.default(json!({"body": body, "strict": false})).await;
    let answer =
        fixture.post(path("native", false), &request("native", false)).send().await.unwrap();
    let reply: Value = answer.json().await.unwrap();
    let row = fixture.gateway.logs(1).await.remove(0);
    let usage = &reply["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"]),
        (&row["inputTokens"], &row["outputTokens"]),
        "{reply}"
    );
}
