//! Stored credentials and secrets through the built binary, on both databases: bound to their
//! providers, sealed again with another key, and read from files.

mod binding;
mod files;
mod rotation;

use serde_json::{Value, json};
use sqlx::{Connection, Row};
use tollgate::store::Backend;

use crate::support::gateway::Gateway;
use crate::support::postgres;
use crate::support::upstream::Upstream;

pub const OLD: &str = "the-old-secret-key-0123456789";
pub const NEW: &str = "the-new-secret-key-9876543210";

/// A gateway, its database and its upstream.
pub struct Bed {
    pub gateway: Gateway,
    pub upstream: Upstream,
    database: Option<String>,
}

impl Bed {
    /// Prepared and not started.
    pub async fn prepare(backend: Backend, env: &[(&str, &str)]) -> Self {
        let database = (backend == Backend::Postgres).then(postgres::fresh_database);
        let mut gateway = Gateway::prepare(env);
        if let Some(database) = &database {
            gateway.set("DATABASE_URL", database);
        }
        Self { gateway, upstream: Upstream::start().await, database }
    }

    pub async fn start(backend: Backend, env: &[(&str, &str)]) -> Self {
        let mut bed = Self::prepare(backend, env).await;
        bed.restart().await;
        let price =
            json!({"m": {"mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 0}});
        bed.gateway.prices(price).await;
        bed
    }

    pub async fn restart(&mut self) {
        self.gateway.kill();
        self.gateway.spawn();
        self.gateway.ready().await;
    }

    /// A provider that is tried first if `priority` is low.
    pub async fn provider(&self, name: &str, key: &str, priority: i64) -> i64 {
        let fields = json!({"name": name, "key": key, "priority": priority});
        self.gateway.provider("native", &self.upstream.url, fields).await
    }

    async fn connect(&self) -> sqlx::AnyConnection {
        sqlx::any::install_default_drivers();
        let file = format!("sqlite:{}/data/tollgate.db", self.gateway.dir.path().display());
        sqlx::AnyConnection::connect(self.database.as_deref().unwrap_or(&file)).await.unwrap()
    }

    /// Runs statements directly in the database, and triggers a reload of the snapshot.
    pub async fn meddle(&self, sql: &str) {
        let mut connection = self.connect().await;
        let sql = format!("{sql}; UPDATE config_version SET version = version + 1");
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Every sealed text with the name of its owner.
    pub async fn ciphers(&self) -> Vec<(String, String)> {
        let mut connection = self.connect().await;
        let sql = "SELECT name, key_cipher AS cipher FROM providers WHERE deleted_at IS NULL \
                   UNION ALL SELECT 'webhook', secret_cipher FROM notification_settings \
                   WHERE secret_cipher IS NOT NULL ORDER BY 1";
        let rows = sqlx::query(sql).fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        rows.iter().map(|row| (row.get("name"), row.get("cipher"))).collect()
    }

    /// The ids of the keys in the texts.
    pub async fn key_ids(&self) -> Vec<String> {
        let id = |text: String| match text.split(':').collect::<Vec<_>>()[..] {
            ["v2", id, _] => id.to_owned(),
            _ => panic!("{text}"),
        };
        let mut ids: Vec<String> =
            self.ciphers().await.into_iter().map(|(_, text)| id(text)).collect();
        ids.dedup();
        ids
    }

    /// Sends one request; returns the credential that the upstream received, or the status of the
    /// refusal.
    pub async fn credential_used(&self, key: &str) -> Result<String, u16> {
        let before = self.upstream.requests().await.len();
        let body =
            json!({"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": "hi"}]});
        let ask = self.gateway.client.post(format!("{}/v1/messages", self.gateway.proxy));
        // A separate session: otherwise it stays with its earlier provider.
        let ask =
            ask.header("x-api-key", key).header("x-session-id", format!("s-{}", fastrand::u64(..)));
        let answer = ask.json(&body).send().await.unwrap();
        let status = answer.status().as_u16();
        answer.bytes().await.unwrap();
        if status != 200 {
            return Err(status);
        }
        let requests = self.upstream.requests().await;
        assert_eq!(requests.len(), before + 1);
        Ok(requests[before]["headers"]["x-api-key"]
            .as_str()
            .unwrap_or_else(|| panic!("{:?}", requests[before]))
            .to_owned())
    }

    pub async fn user(&self) -> String {
        self.gateway.user(json!({"name": "user"})).await.2
    }

    /// Runs a command that must succeed; returns its output.
    pub fn done(&self, arguments: &[&str]) -> String {
        let (good, said) = self.gateway.run(arguments);
        assert!(good, "{arguments:?}: {said}");
        said
    }
}

/// Whether `/readyz` lists the part as degraded.
pub fn is_degraded(parts: &Value) -> bool {
    parts["snapshot"] != "ok"
}

/// Creates a test of each named `async fn(Backend)` on each back end.
macro_rules! on_both {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(tollgate::store::Backend::Sqlite).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(tollgate::store::Backend::Postgres).await;
            })+
        }
    };
}
use on_both;
