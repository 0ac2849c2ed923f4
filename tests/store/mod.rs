//! The store's suite: written once, run on both back ends.

mod accounting;
mod client_versions;
mod configuration;
mod days;
mod durable;
mod key_statistics;
mod logs;
pub mod make;
mod messages;
mod notified;
mod objects;
mod partitions;
mod provider_states;
mod pruned;
mod publication;
mod replica;
mod schema;
mod sessions;
mod speed;
mod totals;
mod writers;

use std::path::Path;

use tollgate::domain::secret::Secret;
use tollgate::store::{Backend, Store};

use crate::support::postgres;

/// A database for one test.
pub struct Place {
    backend: Backend,
    dir: tempfile::TempDir,
    url: Secret,
}

impl Place {
    pub fn new(backend: Backend) -> Self {
        let url = match backend {
            Backend::Sqlite => Secret::default(),
            Backend::Postgres => Secret::new(postgres::fresh_database()),
        };
        Self { backend, dir: tempfile::tempdir().unwrap(), url }
    }

    /// Opens it like another process; not migrated.
    pub async fn open(&self) -> Store {
        match self.backend {
            Backend::Sqlite => Store::open_sqlite(self.dir.path()).await.unwrap(),
            Backend::Postgres => Store::open_postgres(&self.url, 8).await.unwrap(),
        }
    }

    /// Opens it, migrated.
    pub async fn ready(&self) -> Store {
        let store = self.open().await;
        store.migrate().await.unwrap();
        store
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Runs statements directly in the database.
    pub async fn meddle(&self, sql: &str) {
        use sqlx::Connection;
        sqlx::any::install_default_drivers();
        let url = match self.backend {
            Backend::Sqlite => format!("sqlite:{}/tollgate.db", self.dir.path().display()),
            Backend::Postgres => self.url.expose().to_owned(),
        };
        let mut connection = sqlx::AnyConnection::connect(&url).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }
}

/// Creates a test of each named `async fn(Place)` on each back end.
macro_rules! on_both {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::store::Place::new(tollgate::store::Backend::Sqlite)).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::store::Place::new(tollgate::store::Backend::Postgres)).await;
            })+
        }
    };
}
use on_both;
