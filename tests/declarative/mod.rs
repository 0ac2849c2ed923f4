//! `tollgate apply` and `tollgate export` through the built binary, on both databases, over the
//! administration API and directly on the database.

mod applied;
mod faults;
mod pruned;
mod roundtrip;
mod secrets;
mod shipped;

use std::path::PathBuf;

use serde_json::{Value, json};
use sqlx::{Connection, Row};
use tollgate::store::Backend;

use crate::support::gateway::{ADMIN_TOKEN, Gateway};
use crate::support::postgres;

pub const SECRET_KEY: &str = "the-secret-key-of-all-gateways";

/// A gateway and its database.
pub struct Bed {
    pub gateway: Gateway,
    database: Option<String>,
}

/// How a command reaches the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Api,
    Database,
}

impl Bed {
    pub async fn start(backend: Backend) -> Self {
        let mut bed = Self::prepare(backend);
        bed.gateway.spawn();
        bed.gateway.ready().await;
        bed
    }

    /// Everything but the process.
    pub fn prepare(backend: Backend) -> Self {
        let mut gateway = Gateway::prepare(&[("TOLLGATE_SECRET_KEY", SECRET_KEY)]);
        let database = (backend == Backend::Postgres).then(postgres::fresh_database);
        if let Some(database) = &database {
            gateway.set("DATABASE_URL", database);
        }
        Self { gateway, database }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.gateway.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// A command: its exit code, standard output and standard error.
    pub fn run(&self, way: Way, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut words = arguments.to_vec();
        if way == Way::Api {
            words.extend(["--url", &self.gateway.admin]);
        }
        let done = self.gateway.command(&words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    }

    /// A command that must succeed: what it prints.
    pub fn done(&self, way: Way, arguments: &[&str]) -> String {
        let (code, out, err) = self.run(way, arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
        out
    }

    /// Applies a text that must be taken: what is printed.
    pub fn apply(&self, way: Way, text: &str, more: &[&str]) -> String {
        self.write("gateway.yaml", text);
        self.done(way, &[&["apply", "-f", "gateway.yaml"], more].concat())
    }

    /// Applies a text that must be refused; returns the message.
    pub fn refused(&self, way: Way, text: &str, more: &[&str]) -> String {
        self.write("gateway.yaml", text);
        let before = self.export(Way::Database);
        let (code, out, err) = self.run(way, &[&["apply", "-f", "gateway.yaml"], more].concat());
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.contains("nothing was changed"), "{err}");
        assert_eq!(self.export(Way::Database), before, "{err}");
        err
    }

    pub fn export(&self, way: Way) -> String {
        self.done(way, &["export"])
    }

    /// Applies what was exported: nothing may change, and the next export is the same.
    pub fn assert_stable(&self, way: Way) {
        let first = self.export(way);
        let said = self.apply(way, &first, &["--prune"]);
        assert!(said.contains("Plan: 0 to add, 0 to change, 0 to remove."), "{said}\n{first}");
        assert!(said.contains("No changes") && !said.contains("Applied"), "{said}");
        assert_eq!(self.export(way), first);
    }

    /// Calls an operation of the web interface that must succeed: its data.
    pub async fn ui(&self, operation: &str, body: Value) -> Value {
        let ask = self
            .gateway
            .client
            .post(format!("{}/api/ui/{operation}", self.gateway.admin))
            .bearer_auth(ADMIN_TOKEN);
        let answer: Value = ask.json(&body).send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["ok"], true, "{operation}: {answer}");
        answer["data"].clone()
    }

    async fn connect(&self) -> sqlx::AnyConnection {
        sqlx::any::install_default_drivers();
        let file = format!("sqlite:{}", self.path("data/tollgate.db").display());
        sqlx::AnyConnection::connect(self.database.as_deref().unwrap_or(&file)).await.unwrap()
    }

    /// Runs a statement behind the gateway's back.
    pub async fn meddle(&self, sql: &str) {
        let mut connection = self.connect().await;
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Every sealed text.
    pub async fn ciphers(&self) -> Vec<String> {
        let mut connection = self.connect().await;
        let sql = "SELECT key_cipher AS cipher FROM providers WHERE deleted_at IS NULL UNION ALL \
                   SELECT secret_cipher FROM notification_settings WHERE secret_cipher IS NOT NULL";
        let rows = sqlx::query(sql).fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        rows.iter().map(|row| row.get("cipher")).collect()
    }

    pub async fn notifications(&self) -> Value {
        self.gateway.admin("notifications/getNotificationSettingsAction", json!({})).await
    }

    pub async fn users(&self) -> Vec<Value> {
        self.gateway.admin("users/getUsers", json!({})).await.as_array().unwrap().clone()
    }

    /// The audit records of applied documents, the newest first: target, before, after.
    pub async fn audits(&self) -> Vec<Value> {
        let asked = json!({"action": "configuration.applyConfiguration", "pageSize": 100});
        self.gateway.admin("audit/getAuditLog", asked).await["entries"].as_array().unwrap().clone()
    }
}

/// Makes a test of each named `async fn(Backend)` on each back end.
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
