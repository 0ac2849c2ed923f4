//! The requests that are sent: native messages of a wanted size, and short conversations in every
//! format.

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat;

/// A text with line ends, quotes and letters of several bytes, as prompts have them.
const PROSE: &str = "She said \"wait\", and the naïve reader waited.\n\t\
                     fn main() { println!(\"{}\", 1 + 1); } // 東京\n";
/// Letters of prose per message of a long conversation.
const MESSAGE: usize = 4000;

/// The beginning of each text: a number that the load generator may change, so that no two requests
/// are equal.
const MARK: &[u8] = b"#00000000 ";

/// How much of each request the gateway has not seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum New {
    /// The last message, as in an agent's next turn.
    Last,
    /// Every message.
    Every,
}

impl New {
    /// The positions of the eight digits that make a request a new one.
    pub fn places(self, request: &[u8]) -> Vec<usize> {
        let mut all: Vec<usize> =
            memchr::memmem::find_iter(request, MARK).map(|at| at + 1).collect();
        if self == Self::Last {
            all.drain(..all.len().saturating_sub(1));
        }
        all
    }
}

/// A body of about `size` bytes for `model`.
pub fn body(model: &str, size: usize, stream: bool) -> Vec<u8> {
    let mut messages = Vec::new();
    let mut left = size.saturating_sub(200);
    loop {
        let take = left.min(MESSAGE);
        let text: String = "#00000000 "
            .chars()
            .chain(PROSE.chars().cycle())
            .take(MARK.len().max(take * 10 / 12))
            .collect();
        let role = if messages.len() % 2 == 0 { "user" } else { "assistant" };
        messages.push(json!({"role": role, "content": [{"type": "text", "text": text}]}));
        left -= take;
        if left == 0 && role == "user" {
            break;
        }
    }
    let body: Value =
        json!({"model": model, "max_tokens": 1024, "stream": stream, "messages": messages});
    body.to_string().into_bytes()
}

/// A request for the embedding of a text of about `size` bytes.
pub fn embedding(model: &str, size: usize) -> Vec<u8> {
    let text: String =
        "#00000000 ".chars().chain(PROSE.chars().cycle()).take(size * 10 / 12).collect();
    json!({"model": model, "input": text}).to_string().into_bytes()
}

/// One message of about `size` bytes for `model`, in a format.
pub fn body_of(format: WireFormat, model: &str, size: usize, stream: bool) -> Vec<u8> {
    let text: String = PROSE.chars().cycle().take(size * 10 / 12).collect();
    let body: Value = match format {
        WireFormat::Native => {
            json!({"model": model, "max_tokens": 1024, "stream": stream, "messages": [{"role": "user", "content": text}]})
        }
        WireFormat::Responses => {
            json!({"model": model, "max_output_tokens": 1024, "stream": stream, "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]})
        }
        WireFormat::Chat => {
            json!({"model": model, "max_tokens": 1024, "stream": stream, "messages": [{"role": "user", "content": text}]})
        }
        WireFormat::AltCli => {
            json!({"generationConfig": {"maxOutputTokens": 1024}, "contents": [{"role": "user", "parts": [{"text": text}]}]})
        }
    };
    body.to_string().into_bytes()
}

/// The path of a format's requests for `model`.
pub fn path_of(format: WireFormat, model: &str, stream: bool) -> String {
    match format {
        WireFormat::Native => "/v1/messages".to_owned(),
        WireFormat::Responses => "/v1/responses".to_owned(),
        WireFormat::Chat => "/v1/chat/completions".to_owned(),
        WireFormat::AltCli if stream => {
            format!("/v1beta/models/{model}:streamGenerateContent?alt=sse")
        }
        WireFormat::AltCli => format!("/v1beta/models/{model}:generateContent"),
    }
}

/// A header that puts all requests into one session. Without it, each different beginning would be
/// a separate session.
pub const ONE_SESSION: &str = "x-session-id: bench\r\n";

/// A complete HTTP/1.1 request.
pub fn request(path: &str, key: &str, extra: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nx-api-key: {key}\r\n\
         anthropic-version: 2023-06-01\r\nuser-agent: tollgate-bench\r\n{extra}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_about_the_wanted_size() {
        for size in [2_000, 200_000] {
            let body = body("bench-json", size, false);
            assert!(body.len().abs_diff(size) < size / 4, "{size} became {}", body.len());
            let value: Value = serde_json::from_slice(&body).unwrap();
            for format in WireFormat::ALL {
                let short = body_of(format, "bench-json", size, true).len();
                assert!(short.abs_diff(size) < size / 4, "{size} became {short} in {format}");
            }
            let messages = value["messages"].as_array().unwrap();
            let places = New::Every.places(&body);
            assert_eq!(
                (places.len(), New::Last.places(&body)),
                (messages.len(), places[places.len() - 1..].to_vec())
            );
            assert!(places.iter().all(|at| &body[*at..at + 8] == b"00000000"));
            assert_eq!(messages.last().unwrap()["role"], "user");
        }
    }
}
