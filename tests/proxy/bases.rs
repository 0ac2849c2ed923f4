//! The address of a call, for the base addresses that compatible services document.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::fixture::{FORMATS, Fixture, path, request};

/// A provider's kind, its base address and the path of its call. The host of an address is only
/// reached through a proxy, except `HERE`.
const BASES: [(&str, &str, &str); 19] = [
    ("chat-compatible", "HERE", "/v1/chat/completions"),
    ("chat-compatible", "HERE/v1beta/openai/", "/v1beta/openai/chat/completions"),
    ("chat-compatible", "HERE/v1beta/openai", "/v1beta/openai/chat/completions"),
    ("chat-compatible", "HERE/api/paas/v4", "/api/paas/v4/chat/completions"),
    ("chat-compatible", "HERE/v1/openai/chat/completions", "/v1/openai/chat/completions"),
    ("chat-compatible", "HERE/compat", "/compat/chat/completions"),
    (
        "chat-compatible",
        "HERE/v1/projects/p/locations/l/endpoints/openapi",
        "/v1/projects/p/locations/l/endpoints/openapi/chat/completions",
    ),
    ("chat-compatible", "HERE/v2ray", "/v2ray/v1/chat/completions"),
    ("chat-compatible", "http://api.perplexity.ai", "/chat/completions"),
    ("chat-compatible", "http://api.githubcopilot.com", "/chat/completions"),
    ("chat-compatible", "http://models.github.ai/inference", "/inference/chat/completions"),
    (
        "chat-compatible",
        "http://gateway.ai.cloudflare.com/v1/account/gateway/compat",
        "/v1/account/gateway/compat/chat/completions",
    ),
    ("responses", "HERE/v1beta/openai/", "/v1beta/openai/responses"),
    ("responses", "http://api.business.githubcopilot.com", "/responses"),
    ("native", "HERE/v1/team/a", "/v1/team/a/messages"),
    ("native", "HERE/anthropic", "/anthropic/v1/messages"),
    ("native", "http://api.githubcopilot.com", "/v1/messages"),
    ("alt-cli", "HERE/v1beta", "/v1beta/models/m:generateContent"),
    ("alt-cli", "HERE/team/v1", "/team/v1/models/m:generateContent"),
];

fn reply(kind: &str) -> Value {
    match kind {
        "native" => json!({"type": "message", "role": "assistant", "model": "m", "id": "msg_1",
            "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1}}),
        "responses" => json!({"id": "resp_1", "object": "response", "status": "completed",
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}],
            "usage": {"input_tokens": 1, "output_tokens": 1}}),
        "chat-compatible" => json!({"choices": [{"message": {"role": "assistant", "content": "hi"},
            "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
        _ => json!({"candidates": [{"content": {"parts": [{"text": "hi"}]},
            "finishReason": "STOP"}]}),
    }
}

/// The first line of a request whose head is read, and the length of its body.
async fn head(connection: &mut BufReader<TcpStream>) -> Option<(String, usize)> {
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    connection.read_line(&mut first).await.ok().filter(|read| *read > 0)?;
    while connection.read_line(&mut line).await.ok()? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    Some((first, length))
}

/// Answers every path of a kind of provider, also as the proxy before any host. Returns its address
/// and the first lines that it got.
async fn service(kind: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, seen) = (listener.local_addr().unwrap().to_string(), Arc::default());
    let lines: Arc<Mutex<Vec<String>>> = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let lines = Arc::clone(&lines);
            tokio::spawn(async move {
                let mut connection = BufReader::new(connection);
                while let Some((first, length)) = head(&mut connection).await {
                    let is_tunnel = first.starts_with("CONNECT ");
                    lines.lock().unwrap().push(first);
                    let body = reply(kind).to_string();
                    let answer = if is_tunnel {
                        "HTTP/1.1 200 OK\r\n\r\n".to_owned()
                    } else {
                        let mut sent = vec![0; length];
                        connection.read_exact(&mut sent).await.unwrap();
                        format!(
                            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: \
                             {}\r\n\r\n{body}",
                            body.len()
                        )
                    };
                    connection.get_mut().write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    (address, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_to_the_path_that_the_base_address_means() {
    for kind in FORMATS {
        let fixture = Fixture::bare(&[]).await;
        let (address, seen) = service(kind).await;
        for (_, base, wanted) in BASES.into_iter().filter(|(of, ..)| *of == kind) {
            let url = base.replace("HERE", &format!("http://{address}"));
            let proxy = base.starts_with("http").then(|| format!("http://{address}"));
            let id = fixture.gateway.provider(kind, &url, json!({"proxy_url": proxy})).await;
            let asked = fixture.post(path(kind, false), &request(kind, false));
            assert_eq!(asked.send().await.unwrap().status(), 200, "{kind} at {base}");
            let lines = std::mem::take(&mut *seen.lock().unwrap());
            let wanted = format!("POST {wanted} HTTP/1.1\r\n");
            assert_eq!(lines.last(), Some(&wanted), "{kind} at {base}: {lines:?}");
            let host = url.trim_start_matches("http://").split('/').next().unwrap();
            let is_tunnel = |line: &String| line.starts_with(&format!("CONNECT {host}:80"));
            assert_eq!(lines.iter().any(is_tunnel), proxy.is_some(), "{base}: {lines:?}");
            fixture.gateway.admin("providers/removeProvider", json!({"providerId": id})).await;
        }
    }
}
