//! Event streams that are damaged, cut, too large, or come byte by byte.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tollgate::formats::event_stream::{chunk, frame};

use super::super::fixture::Fixture;
use super::bedrock::fields;
use crate::support::upstream::Upstream;

/// A server that sends these bytes, so many at once, after a head with this further line.
async fn serve(bytes: Vec<u8>, size: usize, line: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    #[expect(clippy::disallowed_methods, reason = "the test's runtime outlives its server")]
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            answer(socket, &bytes, size, line).await;
        }
    });
    address
}

async fn answer(mut socket: TcpStream, bytes: &[u8], size: usize, line: &str) {
    socket.set_nodelay(true).unwrap();
    let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            if body.len() >= length.map_or(0, |length| length.trim().parse().unwrap()) {
                break;
            }
        }
        match socket.read(&mut buffer).await {
            Ok(n) if n > 0 => read.extend_from_slice(&buffer[..n]),
            _ => return,
        }
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\n{line}connection: close\r\n\r\n"
    );
    let _ = socket.write_all(head.as_bytes()).await;
    for piece in bytes.chunks(size) {
        if socket.write_all(piece).await.is_err() {
            return;
        }
        tokio::task::yield_now().await;
    }
    let _ = socket.shutdown().await;
}

fn events() -> Vec<Value> {
    let usage = json!({"input_tokens": 9, "output_tokens": 1});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    let block = json!({"type": "text", "text": ""});
    vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "größe"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 9}}),
    ]
}

fn frames() -> Vec<Vec<u8>> {
    events().iter().map(|event| chunk(event.to_string().as_bytes())).collect()
}

pub(super) fn damaged(mut frame: Vec<u8>, at: usize) -> Vec<u8> {
    frame[at] ^= 1;
    frame
}

async fn reply(bytes: Vec<u8>, size: usize, line: &'static str) -> (Fixture, usize, String) {
    reply_of(fields(), bytes, size, line).await
}

/// The reply to a native stream if Bedrock sends this; a spare provider comes after it.
pub(super) async fn reply_of(
    provider: Value,
    bytes: Vec<u8>,
    size: usize,
    line: &'static str,
) -> (Fixture, usize, String) {
    let (fixture, spare) = (Fixture::bare(&[]).await, Upstream::start().await);
    let url = format!("http://{}/model", serve(bytes, size, line).await);
    fixture.gateway.provider("native", &url, provider).await;
    fixture.gateway.provider("native", &spare.url, json!({"priority": 5})).await;
    spare.default(json!({"text": "spare"})).await;
    let answer = fixture.ask_stream().send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let text = answer.text().await.unwrap();
    let spares = spare.requests().await.len();
    (fixture, spares, text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_comes_byte_by_byte_is_whole() {
    let wanted: String = events()
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect();
    // A frame of another kind among them is skipped.
    let other = frame(&[(":event-type", "other"), (":message-type", "event")], b"{}");
    let bytes = [other, frames().concat()].concat();
    for size in [1, 13, 100_000] {
        let (fixture, spares, text) = reply(bytes.clone(), size, "").await;
        assert_eq!((spares, text), (0, wanted.clone()), "{size}");
        let row = fixture.gateway.logs(1).await.remove(0);
        let counted = (&row["inputTokens"], &row["outputTokens"], &row["outcome"]);
        assert_eq!(counted, (&json!(9), &json!(7), &json!("completed")), "{row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_frame_before_the_content_fails_over() {
    let first = frames().concat();
    let oversized = {
        let mut bytes = [0x7fff_ffff_u32.to_be_bytes(), 0_u32.to_be_bytes()].concat();
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes
    };
    let no_type = frame(&[(":event-type", "chunk")], b"{}");
    for (what, bytes, line) in [
        ("checksum of the lengths", damaged(first.clone(), 9), ""),
        ("checksum of the frame", damaged(first.clone(), 60), ""),
        ("too large", oversized, ""),
        ("no frame", b"event: message_start\ndata: {}\n\n".to_vec(), ""),
        ("no type", no_type, ""),
        ("cut", first[..70].to_vec(), ""),
        ("nothing", Vec::new(), ""),
        ("also compressed", first, "content-encoding: gzip\r\n"),
    ] {
        let (_, spares, text) = reply(bytes, 64, line).await;
        assert!(spares == 1 && text.contains("spare"), "{what}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_frame_after_content_ends_with_the_formats_error() {
    let frames = frames();
    let good = frames[..3].concat();
    for (what, rest) in [
        ("checksum", damaged(frames[3].clone(), 40)),
        ("cut", frames[3][..50].to_vec()),
        ("nothing", Vec::new()),
    ] {
        for size in [1, 100_000] {
            let bytes = [good.clone(), rest.clone()].concat();
            let (fixture, spares, text) = reply(bytes, size, "").await;
            assert!(spares == 0 && text.contains("größe"), "{what}: {text}");
            assert!(
                text.contains("event: error\n") && !text.contains("message_stop"),
                "{what}: {text}"
            );
            let row = fixture.gateway.logs(1).await.remove(0);
            assert_eq!(row["outcome"], "broken_off", "{what}: {row}");
        }
    }
}
