//! The load: callers with different limits, JSON and streams, in two formats, at every node; and
//! what each client saw.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::gateway::client;

/// The time since the first call.
pub fn now() -> Duration {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed()
}

/// Lets a time of the plan pass: all times of a run repeat with its seed.
pub async fn pass(time: Duration) {
    // Sleeps: how long processes suffer and rest by real clocks is the subject.
    tokio::time::sleep(time).await;
}

/// Which limit a caller has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// None: no request may fail or be refused.
    Free,
    /// Requests per minute of the user.
    Rpm,
    /// Money of the key in total.
    Money,
    /// Concurrent sessions of the key.
    Sessions,
}

impl Kind {
    /// The name of the limit in a refusal.
    pub const fn limit(self) -> &'static str {
        match self {
            Self::Free => "none",
            Self::Rpm => "user_rpm",
            Self::Money => "key_total",
            Self::Sessions => "key_concurrent_sessions",
        }
    }
}

/// A user with one key.
#[derive(Debug, Clone)]
pub struct Caller {
    pub user: i64,
    pub key: i64,
    pub text: String,
    pub kind: Kind,
}

/// How a request ended for its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Status 200, and the complete reply with the right usage.
    Whole,
    /// 429, and the limit's name.
    Limited(String),
    /// Another status, or an incomplete reply: what was received.
    Wrong(u16, String),
    /// The connection was refused or broke.
    Broken(String),
}

/// A request as its client saw it.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "some fields are only printed, with a violation")]
pub struct Asked {
    /// Its number, which its provider reports as input tokens.
    pub number: u64,
    pub key: i64,
    pub node: usize,
    pub session: String,
    pub format: &'static str,
    pub streamed: bool,
    pub began: Duration,
    pub ended: Duration,
    /// The gateway's id of the request, if a head was received.
    pub id: Option<String>,
    pub end: End,
}

/// What all clients share.
pub struct Board {
    pub proxies: Vec<String>,
    http: reqwest::Client,
    next: AtomicU64,
    pub asked: Mutex<Vec<Asked>>,
}

impl Board {
    pub fn new(proxies: Vec<String>) -> Arc<Self> {
        let (next, asked) = (AtomicU64::new(1), Mutex::default());
        Arc::new(Self { proxies, http: client(), next, asked })
    }

    /// One request, noted.
    pub async fn ask(&self, caller: &Caller, node: usize, session: &str, shape: Shape) -> End {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let began = now();
        let path = if shape.format == "native" { "/v1/messages" } else { "/v1/chat/completions" };
        let post = self.http.post(format!("{}{path}", self.proxies[node]));
        let post = post.header("x-api-key", &caller.text).header("x-session-id", session);
        let (id, end) = match post.json(&shape.body(number)).send().await {
            Err(error) => (None, End::Broken(format!("{error:?}"))),
            Ok(answer) => {
                let id = answer.headers().get("x-tollgate-request-id");
                let id = id.map(|id| id.to_str().unwrap().to_owned());
                (id, shape.read(number, answer).await)
            }
        };
        let asked = Asked {
            number,
            key: caller.key,
            node,
            session: session.to_owned(),
            format: shape.format,
            streamed: shape.streamed,
            began,
            ended: now(),
            id,
            end: end.clone(),
        };
        self.asked.lock().push(asked);
        end
    }
}

/// What a request looks like.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub format: &'static str,
    pub streamed: bool,
    /// How long its provider takes.
    pub ms: u64,
}

impl Shape {
    /// One of the four, by a number.
    pub fn nth(n: u64, ms: u64) -> Self {
        let format = if n.is_multiple_of(2) { "native" } else { "chat-compatible" };
        Self { format, streamed: (n / 2).is_multiple_of(2), ms }
    }

    fn body(self, number: u64) -> Value {
        let pace = if self.streamed { "between_events_ms" } else { "delay_ms" };
        let ms = if self.streamed { self.ms / 10 } else { self.ms };
        let text = format!(
            r#"[[mock {{"usage":{{"input":{number},"output":100}},"events":4,"{pace}":{ms}}}]]"#
        );
        let turn = json!([{"role": "user", "content": text}]);
        let mut body =
            json!({"model": "m", "max_tokens": 100, "messages": turn, "stream": self.streamed});
        if self.streamed && self.format != "native" {
            body["stream_options"] = json!({"include_usage": true});
        }
        body
    }

    async fn read(self, number: u64, answer: reqwest::Response) -> End {
        let status = answer.status().as_u16();
        let text = match answer.text().await {
            Ok(text) => text,
            Err(error) => return End::Broken(format!("{status}, then {error:?}")),
        };
        if status == 429 {
            let refusal: Value = serde_json::from_str(&text).unwrap_or_default();
            let limit = refusal["error"]["limit_type"].as_str().unwrap_or(&text);
            return End::Limited(limit.to_owned());
        }
        let last = if self.format == "native" { "event: message_stop" } else { "data: [DONE]" };
        let whole = if self.streamed {
            text.contains(last) && !text.contains("\"error\"")
        } else {
            let reply: Value = serde_json::from_str(&text).unwrap_or_default();
            let usage = &reply["usage"];
            let of = |native: &str, chat: &str| usage[native].as_u64().or(usage[chat].as_u64());
            of("input_tokens", "prompt_tokens") == Some(number)
                && of("output_tokens", "completion_tokens") == Some(100)
        };
        if status == 200 && whole { End::Whole } else { End::Wrong(status, text) }
    }
}

/// Running clients of some callers.
pub struct Load {
    stop: Arc<AtomicBool>,
    clients: JoinSet<()>,
}

impl Load {
    /// `each` clients of a caller at each node. They pause after a reply.
    pub fn start(board: &Arc<Board>, callers: &[Caller], each: i64, pause: Duration) -> Self {
        let mut load = Self { stop: Arc::default(), clients: JoinSet::new() };
        for (node, caller, n) in (0..board.proxies.len()).flat_map(|node| {
            callers.iter().flat_map(move |caller| (0..each).map(move |n| (node, caller, n)))
        }) {
            let (board, caller) = (Arc::clone(board), caller.clone());
            let stop = Arc::clone(&load.stop);
            load.clients.spawn(async move {
                let mut sent = n.unsigned_abs();
                while !stop.load(Ordering::SeqCst) {
                    // A new conversation now and then, and for a limit of sessions each time.
                    let turns = if caller.kind == Kind::Sessions { 1 } else { 25 };
                    let session = format!("{}-{node}-{n}-{}", caller.key, sent / turns);
                    let ms = match (caller.kind, sent % 50) {
                        (Kind::Sessions, _) => 200,
                        // Now and then one that is in flight for long.
                        (_, 25) => 1_500,
                        _ => 20 + sent % 7 * 15,
                    };
                    board.ask(&caller, node, &session, Shape::nth(sent, ms)).await;
                    sent += 1;
                    pass(pause).await;
                }
            });
        }
        load
    }

    /// Waits for each client's last reply.
    pub async fn end(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        while let Some(ended) = self.clients.join_next().await {
            ended.unwrap();
        }
    }
}
