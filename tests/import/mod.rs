//! `tollgate import` through the built binary: databases with the peers' real schemas, then
//! requests with the peers' own keys.

mod balances;
mod fixtures;
mod refused;
mod switched;

use std::path::PathBuf;

use serde_json::json;
use sqlx::{Connection, Row};
use tollgate::store::Backend;

use crate::support::gateway::Gateway;
use crate::support::postgres;
use crate::support::upstream::Upstream;

/// A gateway that is not started yet, with a migrated database, and an upstream.
pub struct Bed {
    pub gateway: Gateway,
    pub upstream: Upstream,
    database: Option<String>,
}

impl Bed {
    pub async fn new(backend: Backend) -> Self {
        Self::with(backend, &[]).await
    }

    pub async fn with(backend: Backend, env: &[(&str, &str)]) -> Self {
        let mut gateway = Gateway::prepare(env);
        let database = (backend == Backend::Postgres).then(postgres::fresh_database);
        if let Some(database) = &database {
            gateway.set("DATABASE_URL", database);
        }
        let bed = Self { gateway, upstream: Upstream::start().await, database };
        let (done, said) = bed.gateway.run(&["migrate"]);
        assert!(done, "{said}");
        bed.upstream.default(json!({"usage": {"output": 100}})).await;
        bed
    }

    pub async fn serve(&mut self) {
        self.gateway.spawn();
        self.gateway.ready().await;
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.gateway.dir.path().join(name)
    }

    /// The command: its exit code, standard output and standard error.
    pub fn run(&self, peer: &str, from: &str, more: &[&str]) -> (Option<i32>, String, String) {
        let words = [&["import", peer, "--from", from], more].concat();
        let done = self.gateway.command(&words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (out, err) = (text(done.stdout), text(done.stderr));
        for secret in fixtures::SECRETS {
            assert!(
                !out.contains(secret) && !err.contains(secret),
                "{secret} is printed:\n{out}{err}"
            );
        }
        (done.status.code(), out, err)
    }

    /// An import that must succeed: what it says.
    pub fn import(&self, peer: &str, from: &str, more: &[&str]) -> String {
        let (code, out, err) = self.run(peer, from, more);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
        out
    }

    /// An import that must be refused: exit code and what it says. Nothing is changed.
    pub async fn refused(&self, peer: &str, from: &str) -> (i32, String) {
        let before = self.state().await;
        let (code, out, err) = self.run(peer, from, &[]);
        assert_eq!(out, "", "{err}");
        assert_eq!(self.state().await, before, "{err}");
        assert_eq!(err.trim_end().lines().count(), 1, "one message: {err}");
        (code.unwrap(), err)
    }

    /// Everything that an import writes: the configuration as a file, and the opening balances.
    pub async fn state(&self) -> (String, Vec<(i64, Option<i64>, Option<i64>, i64)>) {
        let (done, exported) = self.gateway.run(&["export"]);
        assert!(done, "{exported}");
        let mut connection = self.connect().await;
        let sql = "SELECT spent_at, user_id, key_id, cost FROM opening_balances ORDER BY id";
        let rows = sqlx::query(sql).fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        (
            exported,
            rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect(),
        )
    }

    /// The opening balance of each user, and of each key (`user/key`), in nano-USD.
    pub async fn balances(&self) -> Vec<(String, i64)> {
        let mut connection = self.connect().await;
        let sql = "SELECT users.name AS name, CAST(SUM(cost) AS BIGINT) AS cost \
                   FROM opening_balances JOIN users ON users.id = opening_balances.user_id \
                   GROUP BY users.id, users.name UNION ALL \
                   SELECT users.name || '/' || api_keys.name, CAST(SUM(cost) AS BIGINT) \
                   FROM opening_balances JOIN users ON users.id = opening_balances.user_id \
                   JOIN api_keys ON api_keys.id = opening_balances.key_id GROUP BY api_keys.id, \
                   users.name, api_keys.name";
        let rows = sqlx::query(sql).fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let mut found: Vec<(String, i64)> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        found.sort();
        found
    }

    async fn connect(&self) -> sqlx::AnyConnection {
        sqlx::any::install_default_drivers();
        let file = format!("sqlite:{}", self.path("data/tollgate.db").display());
        sqlx::AnyConnection::connect(self.database.as_deref().unwrap_or(&file)).await.unwrap()
    }

    /// A request with a key: the status, and the error's message.
    pub async fn ask(&self, key: &str, model: &str) -> (u16, String) {
        let body = json!({"model": model, "max_tokens": 16, "messages": [{"role": "user", "content": "Hello"}]});
        let url = format!("{}/v1/messages", self.gateway.proxy);
        let sent = self
            .gateway
            .client
            .post(url)
            .header("x-api-key", key)
            .json(&body)
            .send()
            .await
            .unwrap();
        let status = sent.status().as_u16();
        let answer: serde_json::Value = sent.json().await.unwrap();
        (status, answer["error"]["message"].as_str().unwrap_or_default().to_owned())
    }

    /// Keys that work, and keys of which a limit is used up at the peer.
    pub async fn expect(&self, expected: &[(&str, u16)]) {
        for (key, status) in expected {
            let (got, message) = self.ask(key, "m").await;
            assert_eq!(got, *status, "{key}: {message}\n{}", self.gateway.log());
        }
    }
}

/// Runs statements on another database.
pub async fn execute(url: &str, sql: &str) {
    sqlx::any::install_default_drivers();
    let mut connection = sqlx::AnyConnection::connect(url).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
