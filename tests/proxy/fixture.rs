//! A gateway with a mock upstream, a provider of each format and one key: the fixture of most of
//! these tests.

use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::upstream::Upstream;

pub const FORMATS: [&str; 4] = ["native", "responses", "chat-compatible", "alt-cli"];

pub struct Fixture {
    pub gateway: Gateway,
    pub upstream: Upstream,
    pub key: String,
    pub user_id: i64,
    pub key_id: i64,
}

impl Fixture {
    /// With one provider of each format.
    pub async fn full() -> Self {
        let fixture = Self::bare(&[]).await;
        for kind in FORMATS {
            fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
        }
        fixture
    }

    /// With one native provider.
    pub async fn native() -> Self {
        Self::native_with(&[]).await
    }

    /// With one native provider and further settings.
    pub async fn native_with(env: &[(&str, &str)]) -> Self {
        let fixture = Self::bare(env).await;
        fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
        fixture
    }

    /// Without providers.
    pub async fn bare(env: &[(&str, &str)]) -> Self {
        let (gateway, upstream) = (Gateway::with(env).await, Upstream::start().await);
        gateway.prices(prices()).await;
        let (user_id, key_id, key) = gateway.user(json!({"name": "ada"})).await;
        Self { gateway, upstream, key, user_id, key_id }
    }

    /// A POST with the key as `x-api-key`.
    pub fn post(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        self.gateway
            .client
            .post(format!("{}{path}", self.gateway.proxy))
            .header("x-api-key", &self.key)
            .json(body)
    }

    /// A native request for one answer.
    pub fn ask(&self) -> reqwest::RequestBuilder {
        self.post("/v1/messages", &request("native", false))
    }

    /// A native request for a stream.
    pub fn ask_stream(&self) -> reqwest::RequestBuilder {
        self.post("/v1/messages", &request("native", true))
    }
}

/// Simple figures: 1, 2, 3, 4 and 0.5 USD per million tokens.
pub fn prices() -> Value {
    json!({"m": {
        "mode": "chat",
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 2e-6,
        "cache_creation_input_token_cost": 3e-6,
        "cache_creation_input_token_cost_above_1hr": 4e-6,
        "cache_read_input_token_cost": 5e-7,
    }})
}

/// The path of a format's requests.
pub fn path(format: &str, stream: bool) -> &'static str {
    match (format, stream) {
        ("native", _) => "/v1/messages",
        ("responses", _) => "/v1/responses",
        ("chat-compatible", _) => "/v1/chat/completions",
        (_, false) => "/v1beta/models/m:generateContent",
        (_, true) => "/v1beta/models/m:streamGenerateContent?alt=sse",
    }
}

/// A small request in a format.
pub fn request(format: &str, stream: bool) -> Value {
    saying(format, stream, "say hello")
}

pub fn saying(format: &str, stream: bool, text: &str) -> Value {
    let turn = json!([{"role": "user", "content": text}]);
    match format {
        "native" => json!({"model": "m", "max_tokens": 100, "messages": turn, "stream": stream}),
        "responses" => json!({"model": "m", "input": turn, "stream": stream}),
        "chat-compatible" => json!({"model": "m", "messages": turn, "stream": stream}),
        _ => json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
    }
}
