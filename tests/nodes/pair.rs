//! Two gateways that act as one: the fixture of these tests.

use std::time::Duration;

use rust_decimal::Decimal;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::proxy::fixture::request;
use crate::support::gateway::Gateway;
use crate::support::postgres;
use crate::support::redis::Redis;
use crate::support::upstream::Upstream;
use crate::support::wait;

/// How long a test waits for a condition.
pub const TIME_LIMIT: Duration = Duration::from_secs(60);

pub struct Pair {
    pub nodes: [Gateway; 2],
    pub redis: Redis,
    pub upstream: Upstream,
}

/// A caller.
pub struct Person {
    pub user: i64,
    pub key: i64,
    pub text: String,
}

impl Pair {
    /// Requests wait for Redis without a practical bound, so that a slow machine makes no
    /// difference.
    pub async fn start() -> Self {
        Self::with(Redis::start(), &[("TOLLGATE_REDIS_TIMEOUT", "10s")]).await
    }

    pub async fn with(redis: Redis, env: &[(&str, &str)]) -> Self {
        Self::over(&postgres::fresh_database(), redis, env).await
    }

    /// On this database.
    pub async fn over(database: &str, redis: Redis, env: &[(&str, &str)]) -> Self {
        let url = redis.url();
        let shared = [
            ("DATABASE_URL", database),
            ("REDIS_URL", url.as_str()),
            ("TOLLGATE_SECRET_KEY", "a-key-that-both-nodes-know"),
        ];
        let env: Vec<(&str, &str)> = shared.iter().chain(env).copied().collect();
        let first = Gateway::with(&env).await;
        let (second, upstream) = tokio::join!(Gateway::with(&env), Upstream::start());
        let price = json!({"m": {"mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 1e-4}});
        first.prices(price).await;
        first.provider("native", &upstream.url, json!({"name": "up"})).await;
        upstream.default(json!({"usage": {"output": 100}})).await;
        Self { nodes: [first, second], redis, upstream }
    }

    /// A user with one key, present on both nodes.
    pub async fn person(&self, user: Value, key: Value) -> Person {
        let mut fields = json!({"name": format!("user-{}", fastrand::u32(..))});
        merge(&mut fields, user);
        let (user, id, text) = self.nodes[0].user(fields).await;
        let mut edit = json!({"keyId": id});
        merge(&mut edit, key);
        if edit.as_object().unwrap().len() > 1 {
            self.nodes[0].admin("keys/editKey", edit).await;
        }
        let version = self.version(0).await;
        self.until(async || self.version(1).await >= version).await;
        Person { user, key: id, text }
    }

    /// The version of the configuration that is in effect on a node.
    pub async fn version(&self, node: usize) -> f64 {
        self.nodes[node].metric("tollgate_snapshot_version").await
    }

    /// A request of a session at one of the nodes.
    pub fn ask(&self, node: usize, who: &Person, session: &str) -> reqwest::RequestBuilder {
        let gateway = &self.nodes[node];
        let ask = gateway.client.post(format!("{}/v1/messages", gateway.proxy));
        ask.header("x-api-key", &who.text)
            .header("x-session-id", session)
            .json(&request("native", false))
    }

    /// Sends this many concurrent requests, in turn to each node: the statuses, and the limits that
    /// refused.
    pub async fn at_once(
        &self,
        who: &Person,
        count: usize,
        session: impl Fn(usize) -> String,
    ) -> (usize, Vec<String>) {
        let mut asking = JoinSet::new();
        for n in 0..count {
            asking.spawn(self.ask(n % 2, who, &session(n)).send());
        }
        let (mut passed, mut refused) = (0, Vec::new());
        while let Some(answer) = asking.join_next().await {
            let answer = answer.unwrap().unwrap();
            match answer.status().as_u16() {
                200 => passed += 1,
                429 => refused.push(limit_of(&answer.json().await.unwrap())),
                other => panic!("{other}: {}", answer.text().await.unwrap()),
            }
        }
        (passed, refused)
    }

    /// The key's total spend, according to a node.
    pub async fn spent(&self, node: usize, who: &Person) -> Decimal {
        let usage =
            self.nodes[node].admin("keys/getKeyLimitUsage", json!({"keyId": who.key})).await;
        usage["costTotal"]["current"].to_string().parse().unwrap()
    }

    /// Waits until both nodes have this many settled requests.
    pub async fn settled(&self, who: &Person, requests: usize) {
        for node in 0..2 {
            self.until(async || self.spent(node, who).await == cost(requests)).await;
        }
    }

    /// A metric, summed over both nodes.
    pub async fn metric(&self, name: &str) -> f64 {
        let (first, second) = tokio::join!(self.nodes[0].metric(name), self.nodes[1].metric(name));
        [first, second].iter().sum()
    }

    pub async fn until(&self, reached: impl AsyncFnMut() -> bool) {
        let instead = || {
            let logs = [self.nodes[0].log(), self.nodes[1].log()].join("\n--- the other ---\n");
            format!("it does not come:\n{logs}")
        };
        wait::until(instead, reached).await;
    }
}

/// The cost of this many requests: a cent each, for a hundred output tokens. The reservation of one
/// is the same.
pub fn cost(requests: usize) -> Decimal {
    Decimal::new(i64::try_from(requests).unwrap(), 2)
}

pub fn limit_of(refusal: &Value) -> String {
    refusal["error"]["limit_type"].as_str().unwrap_or_else(|| panic!("{refusal}")).to_owned()
}

fn merge(into: &mut Value, fields: Value) {
    for (name, value) in fields.as_object().unwrap() {
        into[name] = value.clone();
    }
}
