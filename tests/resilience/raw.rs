//! Manual ends: a provider that does to its socket what a test says, and a client that reads as the
//! test says.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Time-out of any single step.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A provider: every request that it reads completely is passed to `play` with its connection. It
/// ends when dropped.
pub struct Provider {
    pub url: String,
    accepting: JoinHandle<()>,
}

impl Provider {
    /// `play` gets the connection and the number of the request on it, and returns whether to read
    /// another one.
    pub async fn start<F, P>(play: P) -> Self
    where
        P: Fn(TcpStream, usize) -> F + Send + Sync + 'static,
        F: Future<Output = Option<TcpStream>> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let play = Arc::new(play);
        let accepting = tokio::spawn(async move {
            while let Ok((mut tcp, _)) = listener.accept().await {
                let play = Arc::clone(&play);
                tokio::spawn(async move {
                    for number in 0.. {
                        if read_message(&mut tcp).await.is_none() {
                            return;
                        }
                        match play(tcp, number).await {
                            Some(same) => tcp = same,
                            None => return,
                        }
                    }
                });
            }
        });
        Self { url, accepting }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Reads one message with a length or in chunks: head and body. `None` when the connection ends
/// before its end.
pub async fn read_message(tcp: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let reading = async {
        let mut got = Vec::new();
        let mut piece = vec![0; 16 * 1024];
        loop {
            if let Some(message) = whole(&got) {
                return Some(message);
            }
            match tcp.read(&mut piece).await {
                Ok(0) | Err(_) => return None,
                Ok(n) => got.extend_from_slice(&piece[..n]),
            }
        }
    };
    tokio::time::timeout(TIME_LIMIT, reading).await.expect("a message, or the connection's end")
}

/// The message, if it has arrived whole: head and body.
pub fn whole(got: &[u8]) -> Option<(String, Vec<u8>)> {
    let end = got.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&got[..end]).to_ascii_lowercase();
    let body = &got[end..];
    if head.contains("transfer-encoding: chunked") {
        return body.ends_with(b"0\r\n\r\n").then(|| (head, body.to_vec()));
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())
        .unwrap_or(0);
    (body.len() >= length).then(|| (head, body.to_vec()))
}

/// The head of a stream in the native format, its body in chunks.
pub const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The first events of a native stream, up to the first text.
pub fn beginning() -> String {
    let message = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1000,"output_tokens":1}}}"#;
    let block =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    format!(
        "event: message_start\ndata: {message}\n\nevent: content_block_start\ndata: {block}\n\n{}",
        text("hello")
    )
}

/// One text event of a native stream.
pub fn text(what: &str) -> String {
    let delta = format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{what}"}}}}"#
    );
    format!("event: content_block_delta\ndata: {delta}\n\n")
}

/// A chunk of a chunked body.
pub fn chunk(of: &str) -> Vec<u8> {
    format!("{:x}\r\n{of}\r\n", of.len()).into_bytes()
}

/// A whole native reply.
pub fn reply() -> String {
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}"#;
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Writes until all is written or the peer has closed. Returns whether all was.
pub async fn write(tcp: &mut TcpStream, bytes: &[u8]) -> bool {
    tcp.write_all(bytes).await.is_ok()
}

/// A request as a client writes it.
pub fn request(key: &str, body: &serde_json::Value) -> Vec<u8> {
    let body = body.to_string();
    let head = "POST /v1/messages HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n";
    format!("{head}x-api-key: {key}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
