//! A start without the database: with the snapshot on disk, and back to the database when it can be
//! reached.

mod recovery;
mod refusals;

use rust_decimal::Decimal;
use serde_json::{Value, json};
use sqlx::Connection as _;

use crate::proxy::fixture::request;
use crate::support::gateway::Gateway;
use crate::support::postgres::Server;
use crate::support::upstream::Upstream;

const SECRET: &str = "a-key-that-the-nodes-know";
/// The provider's key: no file shows it.
const CREDENTIAL: &str = "upstream-credential-0123456789";

/// A gateway on a database server of its own. A request costs one cent.
struct Bed {
    server: Server,
    database: String,
    upstream: Upstream,
    node: Gateway,
    key_id: i64,
    key: String,
}

impl Bed {
    /// With a key that may spend ten cents a day.
    async fn start(env: &[(&str, &str)]) -> Self {
        let (server, upstream) = (Server::own(), Upstream::start().await);
        let database = server.fresh_database();
        let fixed = [("DATABASE_URL", database.as_str()), ("TOLLGATE_SECRET_KEY", SECRET)];
        let env: Vec<(&str, &str)> = fixed.iter().chain(env).copied().collect();
        let node = Gateway::with(&env).await;
        let price = json!({"m": {"mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 1e-4}});
        node.prices(price).await;
        let fields = json!({"name": "provider-of-this-test", "key": CREDENTIAL});
        node.provider("native", &upstream.url, fields).await;
        upstream.default(json!({"usage": {"output": 100}})).await;
        let (_, key_id, key) = node.user(json!({"name": "user-of-this-test"})).await;
        let limit = json!({"keyId": key_id, "name": "default", "limitDailyUsd": 0.1});
        node.admin("keys/editKey", limit).await;
        Self { server, database, upstream, node, key_id, key }
    }

    /// A second gateway on the same database.
    async fn other(&self) -> Gateway {
        let env = [("DATABASE_URL", self.database.as_str()), ("TOLLGATE_SECRET_KEY", SECRET)];
        Gateway::with(&env).await
    }

    /// The status of a request with the key.
    async fn ask(&self) -> u16 {
        ask(&self.node, &self.key).await
    }

    /// Sends requests until one is refused; returns how many passed.
    async fn ask_until_refused(&self) -> usize {
        for passed in 0..20 {
            match self.ask().await {
                200 => {}
                429 => return passed,
                other => panic!("{other}\n{}", self.node.log()),
            }
        }
        panic!("the limit does not hold")
    }

    async fn stop(&mut self) {
        self.node.signal("TERM");
        self.node.ended().await;
    }

    /// The running node has written its snapshot, at a stop; then its database server is killed.
    async fn lose_the_database_after_a_snapshot(&mut self) {
        self.stop().await;
        self.node.spawn();
        self.node.ready().await;
        self.server.kill();
    }

    /// Starts the node while its database is away; waits until it takes requests.
    async fn start_away(&mut self) {
        self.node.spawn();
        self.node.answers().await;
        self.node.readiness_shows(|_, parts| parts["proxy"] == "ok").await;
    }

    /// A start that must fail: its output.
    fn start_fails(&self) -> String {
        let (started, output) = self.node.run(&["serve"]);
        assert!(!started, "{output}");
        output
    }

    /// Every figure of the key's spending, in cents.
    async fn spent(&self) -> Vec<Decimal> {
        let usage = self.node.admin("keys/getKeyLimitUsage", json!({"keyId": self.key_id})).await;
        ["cost5h", "costDaily", "costWeekly", "costMonthly", "costTotal"]
            .iter()
            .map(|window| {
                let dollars = usage[window]["current"].to_string();
                dollars.parse::<Decimal>().unwrap_or_else(|_| panic!("{usage}"))
                    * Decimal::ONE_HUNDRED
            })
            .collect()
    }

    /// Waits until the usage log has this many complete replies; there must never be more.
    async fn replies(&self, wanted: u64) {
        self.node.metric_shows("tollgate_journal_pending_bytes", |bytes| bytes == 0.0).await;
        let filter = json!({"pageSize": 1, "statusCode": 200});
        let found = self.node.admin("usage-logs/getUsageLogs", filter).await["total"].clone();
        assert_eq!(found, json!(wanted));
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.node.dir.path().join("data").join(name)
    }

    /// Runs a statement directly in the database.
    async fn meddle(&self, sql: &'static str) {
        sqlx::any::install_default_drivers();
        let mut connection = sqlx::AnyConnection::connect(&self.database).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }
}

async fn ask(node: &Gateway, key: &str) -> u16 {
    let ask = node.client.post(format!("{}/v1/messages", node.proxy)).header("x-api-key", key);
    let answer = ask.json(&request("native", false)).send().await.unwrap();
    let status = answer.status().as_u16();
    answer.bytes().await.unwrap();
    status
}

/// `/readyz` as JSON.
async fn readyz(node: &Gateway) -> Value {
    let answer = node.client.get(format!("{}/readyz", node.metrics)).send().await.unwrap();
    answer.json().await.unwrap()
}
