//! Three nodes, each behind its own proxies to one PostgreSQL and one Redis; three providers.

use std::time::{Duration, Instant};

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};

use super::load::{Caller, Kind};
use super::upstream::{Provider, Visits};
use crate::support::clock::SetClock;
use crate::support::gateway::Gateway;
use crate::support::link::{Link, Server as Behind};
use crate::support::postgres::Server;
use crate::support::redis::Redis;
use crate::support::wait;

/// How many nodes there are.
pub const NODES: usize = 3;
/// How long the nodes may take until nothing is broken any more.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// `redis.lease` of the nodes.
pub const LEASE: Duration = Duration::from_secs(3);
/// `redis.timeout` of the nodes: a busy machine answers late without a fault.
pub const TIMEOUT: Duration = Duration::from_millis(500);
/// How many sessions one of the providers serves at once.
const PROVIDER_SESSIONS: u64 = 6;

/// A gateway and its surroundings.
pub struct Node {
    pub gateway: Gateway,
    pub redis: Link,
    pub postgres: Link,
    pub clock: SetClock,
}

/// Everything that can break.
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub postgres: Server,
    pub redis: Redis,
    /// The database, past the proxies.
    pub database: String,
    /// In the order in which requests prefer them; the last one has no limit and never fails.
    pub providers: [(i64, Provider); 3],
    pub visits: Visits,
}

impl Cluster {
    pub async fn start() -> Self {
        let postgres = Server::own();
        let redis = Redis::durable();
        let database = postgres.fresh_database();
        let name = database.split('?').next().unwrap().rsplit('/').next().unwrap().to_owned();
        let visits = Visits::default();
        let mut nodes = Vec::new();
        for _ in 0..NODES {
            nodes.push(node(&postgres, &redis, &name).await);
        }
        // The first one makes the tables.
        nodes[0].gateway.spawn();
        nodes[0].gateway.ready().await;
        for node in &mut nodes[1..] {
            node.gateway.spawn();
        }
        for node in &mut nodes[1..] {
            node.gateway.ready().await;
        }
        let first = &nodes[0].gateway;
        first
            .prices(json!({"m": {"mode": "chat", "input_cost_per_token": 1e-9,
                "output_cost_per_token": 1e-4}}))
            .await;
        let metered = Provider::start("metered", true, &visits).await;
        let narrow = Provider::start("narrow", true, &visits).await;
        let spare = Provider::start("spare", false, &visits).await;
        let few = json!({"limit_total_usd": 1, "priority": 0});
        let metered = (add(first, "native", &metered, "metered", few).await, metered);
        let few = json!({"limit_concurrent_sessions": PROVIDER_SESSIONS, "priority": 1});
        let narrow = (add(first, "chat-compatible", &narrow, "narrow", few).await, narrow);
        let dear = json!({"cost_multiplier": 2, "priority": 2});
        let spare = (add(first, "native", &spare, "spare", dear).await, spare);
        Self { nodes, postgres, redis, database, providers: [metered, narrow, spare], visits }
    }

    /// A user with one key, in effect on every node.
    pub async fn caller(&self, kind: Kind, limit: Value) -> Caller {
        let mut fields = json!({"name": format!("{kind:?}-{}", fastrand::u64(..))});
        if kind == Kind::Rpm {
            fields["rpm"] = limit.clone();
        }
        let first = &self.nodes[0].gateway;
        let (user, key, text) = first.user(fields).await;
        let field = match kind {
            Kind::Money => "limitTotalUsd",
            Kind::Sessions => "limitConcurrentSessions",
            Kind::Free | Kind::Rpm => return Caller { user, key, text, kind },
        };
        first.admin("keys/editKey", json!({"keyId": key, field: limit})).await;
        Caller { user, key, text, kind }
    }

    /// Waits until every node has the configuration of the first one.
    pub async fn agreed(&self) {
        let version = self.nodes[0].gateway.metric("tollgate_snapshot_version").await;
        for node in &self.nodes[1..] {
            node.gateway.metric_shows("tollgate_snapshot_version", |v| v >= version).await;
        }
    }

    /// Waits until every node is ready and nothing is degraded, except the parts of this name.
    pub async fn whole(&self, except: &str) -> Result<Duration, String> {
        let began = Instant::now();
        for (n, node) in self.nodes.iter().enumerate() {
            let left = TIME_LIMIT.saturating_sub(began.elapsed());
            let is_whole = async || {
                let found = readiness(&node.gateway).await;
                let degraded = found["degraded"].as_array().cloned().unwrap_or_default();
                (found["ready"] == true && degraded.iter().all(|part| part == except)).then_some(())
            };
            if wait::within(left, is_whole).await.is_none() {
                let found = readiness(&node.gateway).await;
                return Err(format!("node {n} is not whole after a minute: {found}"));
            }
        }
        Ok(began.elapsed())
    }

    /// What a provider has spent in total, in nano-dollars, according to a node.
    pub async fn spent(&self, node: usize, provider: usize) -> i64 {
        let id = self.providers[provider].0;
        let usage = self.nodes[node]
            .gateway
            .admin("providers/getProviderLimitUsage", json!({"providerId": id}))
            .await;
        nanos(&usage["costTotal"]["current"])
    }

    /// Forgets on every node what attempts at the providers ended with.
    pub async fn reset_providers(&self) {
        for node in &self.nodes {
            for (id, _) in &self.providers {
                let body = json!({"providerId": id});
                node.gateway.admin("providers/resetProviderCircuit", body).await;
            }
        }
    }

    /// Lets the first provider spend this much more than it has spent; returns its new limit in
    /// nano-dollars.
    pub async fn refill(&self, cents: i64) -> i64 {
        let limit = self.spent(0, 0).await / 10_000_000 + cents;
        let usd = Decimal::new(limit, 2);
        let edit = json!({"providerId": self.providers[0].0, "limit_total_usd": usd});
        self.nodes[0].gateway.admin("providers/editProvider", edit).await;
        limit * 10_000_000
    }
}

/// An amount of USD in nano-dollars.
pub fn nanos(usd: &Value) -> i64 {
    let usd: Decimal = usd.to_string().parse().unwrap();
    (usd * Decimal::from(1_000_000_000)).to_i64().unwrap()
}

async fn node(postgres: &Server, redis: &Redis, database: &str) -> Node {
    let to_redis = Link::to(Behind::Tcp(redis.port())).await;
    let redis_url = format!("redis://127.0.0.1:{}", to_redis.port);
    let to_postgres = Link::to(Behind::Unix(postgres.socket())).await;
    let clock = SetClock::new();
    let [preload, ahead] = clock.env();
    let lease = format!("{}s", LEASE.as_secs());
    let timeout = format!("{}ms", TIMEOUT.as_millis());
    let url = format!("postgres://postgres@127.0.0.1:{}/{database}", to_postgres.port);
    let env = [
        ("DATABASE_URL", url.as_str()),
        ("REDIS_URL", redis_url.as_str()),
        ("TOLLGATE_SECRET_KEY", "a-key-that-all-nodes-know"),
        ("TOLLGATE_REDIS_TIMEOUT", timeout.as_str()),
        ("TOLLGATE_REDIS_LEASE", lease.as_str()),
        // Short, so that places of sessions become free within a step.
        ("SESSION_TTL", "2s"),
        ("TOLLGATE_LOG_ACCESS", "false"),
        (preload.0, preload.1.as_str()),
        (ahead.0, ahead.1.as_str()),
    ];
    let mut gateway = Gateway::prepare(&env);
    gateway.outlive_full_disks();
    Node { gateway, redis: to_redis, postgres: to_postgres, clock }
}

async fn add(
    gateway: &Gateway,
    format: &str,
    provider: &Provider,
    name: &str,
    mut fields: Value,
) -> i64 {
    fields["name"] = json!(name);
    // Short, so that a circuit that opened is closed again within a step.
    fields["circuit_breaker_open_duration"] = json!(1_000);
    fields["circuit_breaker_half_open_success_threshold"] = json!(1);
    gateway.provider(format, &provider.url, fields).await
}

/// The document of `/readyz`; null if there is no answer.
async fn readiness(gateway: &Gateway) -> Value {
    let url = format!("{}/readyz", gateway.metrics);
    match gateway.client.get(url).send().await {
        Ok(answer) => answer.json().await.unwrap_or_default(),
        Err(_) => Value::Null,
    }
}

/// The factor of a provider's costs, by its name.
pub fn multiplier(provider: &str) -> i64 {
    if provider == "spare" { 2 } else { 1 }
}
