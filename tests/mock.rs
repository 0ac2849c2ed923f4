//! The mock upstream on a loopback port: its replies, streams, listings and its benchmark path.

mod faults;

use std::sync::Once;
use std::time::{Duration, Instant};

use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

struct Mock {
    addr: String,
    client: Client,
    _stop: oneshot::Sender<()>,
}

const FORMATS: [(&str, &str); 4] = [
    ("native", "/v1/messages"),
    ("chat", "/v1/chat/completions"),
    ("responses", "/v1/responses"),
    ("alt", "/v1beta/models/m:generateContent"),
];

impl Mock {
    #[expect(clippy::disallowed_methods, reason = "the test's runtime outlives its mock")]
    async fn start() -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(tollgate_mock::serve(listener, async {
            let _ = stopped.await;
        }));
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        Self { addr, client, _stop: stop }
    }

    /// Sends `text` in a format, streaming or not, with a directive in the header.
    async fn say(&self, format: &str, text: &str, stream: bool, directive: &Value) -> Response {
        let (path, body) = request(format, text, stream);
        self.post(&path, &body, directive).await.unwrap()
    }

    async fn post(&self, path: &str, body: &Value, directive: &Value) -> reqwest::Result<Response> {
        let ask = self.client.post(format!("http://{}{path}", self.addr)).json(body);
        let ask = ask.header("authorization", "Bearer k").header("anthropic-version", "2023-06-01");
        ask.header("x-mock", directive.to_string()).send().await
    }

    async fn operate(&self, path: &str, body: &Value) {
        let sent = self
            .client
            .post(format!("http://{}{path}", self.addr))
            .json(body)
            .send()
            .await
            .unwrap();
        assert!(sent.status().is_success());
    }

    async fn see(&self, path: &str) -> Value {
        self.client
            .get(format!("http://{}{path}", self.addr))
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    }
}

fn request(format: &str, text: &str, stream: bool) -> (String, Value) {
    let messages = json!([{"role": "user", "content": text}]);
    match format {
        "native" => (
            "/v1/messages".into(),
            json!({"model": "m", "max_tokens": 99, "stream": stream, "messages": messages}),
        ),
        "chat" => (
            "/v1/chat/completions".into(),
            json!({"model": "m", "stream": stream, "messages": messages}),
        ),
        "responses" => {
            ("/v1/responses".into(), json!({"model": "m", "stream": stream, "input": messages}))
        }
        _ => {
            let verb = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
            (
                format!("/v1beta/models/m:{verb}"),
                json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
            )
        }
    }
}

/// The answer's text, from a complete body or the data lines of a stream.
fn text(format: &str, body: &str) -> String {
    if let Ok(whole) = serde_json::from_str::<Value>(body) {
        let at = match format {
            "native" => "/content/0/text",
            "chat" => "/choices/0/message/content",
            "responses" => "/output/0/content/0/text",
            _ => "/candidates/0/content/parts/0/text",
        };
        return whole.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    }
    let at = match format {
        "native" => "/delta/text",
        "chat" => "/choices/0/delta/content",
        "responses" => "/delta",
        _ => "/candidates/0/content/parts/0/text",
    };
    let lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let values = lines.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    values.filter_map(|value| Some(value.pointer(at)?.as_str()?.to_owned())).collect()
}

#[tokio::test]
async fn every_format_answers_whole_and_streamed() {
    let mock = Mock::start().await;
    let words = "naïve 東京 🚀 answer";
    for (format, _) in FORMATS {
        for stream in [false, true] {
            for chunking in [
                json!("event"),
                json!("whole"),
                json!("split"),
                json!({"bytes": 1}),
                json!({"bytes": 7}),
            ] {
                let directive = json!({"text": words, "events": 5, "chunking": chunking});
                let got = mock.say(format, "hello", stream, &directive).await;
                assert_eq!(got.status(), 200);
                let kind = got.headers()["content-type"].to_str().unwrap().to_owned();
                assert_eq!(kind.starts_with("text/event-stream"), stream, "{format}");
                assert_eq!(
                    text(format, &got.text().await.unwrap()),
                    words,
                    "{format} {stream} {chunking}"
                );
            }
        }
    }
}

#[tokio::test]
async fn directives_come_from_header_query_text_script_and_default() {
    let mock = Mock::start().await;
    mock.operate("/mock/default", &json!({"text": "default"})).await;
    mock.operate("/mock/script", &json!([{"text": "first"}, {"text": "second"}])).await;
    mock.operate("/mock/script?key=other", &json!({"text": "not ours"})).await;
    let mut got = Vec::new();
    for said in ["a", "b", "c", "[[mock {\"text\": \"marked\"} ]]"] {
        got.push(text(
            "chat",
            &mock.say("chat", said, false, &json!({})).await.text().await.unwrap(),
        ));
    }
    assert_eq!(got, ["first", "second", "default", "marked"]);
    let (path, body) = request("chat", "[[mock {\"text\": \"marked\"} ]]", false);
    let asked = mock
        .post(&format!("{path}?mock=%7B%22text%22%3A%22asked%22%7D"), &body, &json!({}))
        .await
        .unwrap();
    assert_eq!(text("chat", &asked.text().await.unwrap()), "asked");
    let slip = mock.say("chat", "x", false, &json!({"txet": "y"})).await;
    assert_eq!(slip.status(), 400);
    assert!(slip.text().await.unwrap().contains("txet"));
}

#[tokio::test]
async fn a_wished_tool_is_called_and_its_result_quoted() {
    let mock = Mock::start().await;
    let tools = json!([{"name": "look", "input_schema": {"type": "object"}}]);
    let wish = json!({"role": "user", "content": "use tool look {\"at\": \"moon\"}"});
    let body = json!({"model": "m", "max_tokens": 99, "tools": tools, "messages": [wish]});
    let call: Value =
        mock.post("/v1/messages", &body, &json!({})).await.unwrap().json().await.unwrap();
    assert_eq!(call["stop_reason"], "tool_use");
    assert_eq!(call["content"][0]["input"], json!({"at": "moon"}));
    let result = json!({"type": "tool_result", "tool_use_id": call["content"][0]["id"], "content": "cheese"});
    let body = json!({"model": "m", "max_tokens": 99, "tools": tools, "messages":
        [wish, {"role": "assistant", "content": call["content"]}, {"role": "user", "content": [result]}]});
    let end = mock.post("/v1/messages", &body, &json!({})).await.unwrap().text().await.unwrap();
    assert!(text("native", &end).contains("cheese"));
}

#[tokio::test]
async fn usage_is_reported_in_each_formats_split() {
    let mock = Mock::start().await;
    let usage = json!({"input": 10, "output": 20, "cache_read": 4, "cache_write_5m": 2, "cache_write_1h": 1, "reasoning": 5});
    let expected = [
        (
            "native",
            "/usage",
            json!({"input_tokens": 10, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 20}),
        ),
        (
            "chat",
            "/usage",
            json!({"prompt_tokens": 17, "completion_tokens": 20, "total_tokens": 37}),
        ),
        (
            "responses",
            "/usage",
            json!({"input_tokens": 17, "output_tokens": 20, "total_tokens": 37}),
        ),
        (
            "alt",
            "/usageMetadata",
            json!({"promptTokenCount": 17, "candidatesTokenCount": 15, "thoughtsTokenCount": 5, "cachedContentTokenCount": 4, "totalTokenCount": 37}),
        ),
    ];
    for (format, at, want) in expected {
        let got: Value =
            mock.say(format, "x", false, &json!({"usage": usage})).await.json().await.unwrap();
        for (field, value) in want.as_object().unwrap() {
            assert_eq!(&got.pointer(at).unwrap()[field], value, "{format} {field}");
        }
        let none: Value =
            mock.say(format, "x", false, &json!({"no_usage": true})).await.json().await.unwrap();
        assert!(none.pointer(at).is_none_or(Value::is_null), "{format}");
    }
}

#[tokio::test]
async fn pauses_are_kept() {
    let mock = Mock::start().await;
    let start = Instant::now();
    let mut got = mock
        .say(
            "chat",
            "x",
            true,
            &json!({"delay_ms": 40, "first_byte_ms": 60, "between_events_ms": 10, "events": 5}),
        )
        .await;
    assert!(start.elapsed() >= Duration::from_millis(40));
    got.chunk().await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(100));
    while got.chunk().await.unwrap().is_some() {}
    assert!(start.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn gzip_comes_unasked_and_decodes_event_by_event() {
    use std::io::Read;
    let mock = Mock::start().await;
    let got = mock.say("native", "x", true, &json!({"gzip": true, "text": "packed"})).await;
    assert_eq!(got.headers()["content-encoding"], "gzip");
    let bytes = got.bytes().await.unwrap();
    let mut body = String::new();
    flate2::read::GzDecoder::new(bytes.as_ref()).read_to_string(&mut body).unwrap();
    assert_eq!(text("native", &body), "packed");
}

#[tokio::test]
async fn listings_and_counts_speak_the_callers_format() {
    let mock = Mock::start().await;
    let get = |path: &str| {
        mock.client
            .get(format!("http://{}{path}", mock.addr))
            .header("x-mock", "{\"models\": [\"one\"]}")
    };
    let native = get("/v1/models").header("anthropic-version", "1").header("x-api-key", "k");
    assert_eq!(
        native.send().await.unwrap().json::<Value>().await.unwrap()["data"][0]["type"],
        "model"
    );
    let chat = get("/v1/models/one").header("authorization", "Bearer k");
    assert_eq!(chat.send().await.unwrap().json::<Value>().await.unwrap()["object"], "model");
    let alt = get("/v1beta/models?key=k").send().await.unwrap().json::<Value>().await.unwrap();
    assert_eq!(alt["models"][0]["name"], "models/one");
    let gone = get("/v1/models/two").header("authorization", "Bearer k");
    assert_eq!(gone.send().await.unwrap().status(), 404);
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(40)}]});
    let counted: Value = mock
        .post("/v1/messages/count_tokens", &body, &json!({}))
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert!(counted["input_tokens"].as_u64().unwrap() >= 10);
}

#[tokio::test]
async fn the_bench_path_answers_on_a_kept_connection_and_keeps_no_record() {
    let mock = Mock::start().await;
    let mut stream = TcpStream::connect(&mock.addr).await.unwrap();
    let body =
        json!({"model": "bench-json", "max_tokens": 1, "messages": [{"role": "user", "content": "x".repeat(5000)}]})
            .to_string();
    let head =
        format!("POST /v1/messages HTTP/1.1\r\nhost: m\r\ncontent-length: {}\r\n\r\n", body.len());
    for _ in 0..3 {
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut got = Vec::new();
        while !got.ends_with(b"}}") {
            assert!(stream.read_buf(&mut got).await.unwrap() > 0, "the connection stays open");
        }
        let got = String::from_utf8(got).unwrap();
        assert!(got.starts_with("HTTP/1.1 200") && got.contains("content-length: 1"), "{got}");
    }
    let (_, mut paced) = request("native", "x", true);
    paced["model"] = json!("bench-stream");
    let start = Instant::now();
    let got = mock
        .post("/v1/messages?pace_ms=1", &paced, &json!({}))
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert_eq!(got.matches("text_delta").count(), 50);
    assert_eq!(mock.see("/mock/requests").await, json!([]));
    assert_eq!(mock.see("/mock/stats?finished=4").await["finished"], 4);
}
