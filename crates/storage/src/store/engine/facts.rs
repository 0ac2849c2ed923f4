//! What the database says of itself, for `tollgate doctor`.

use std::time::Duration;

use sqlx::{Any, Transaction};

use super::column::Fields;
use super::error::StoreError;
use crate::domain::clock::Timestamp;
use crate::store::{Backend, Store};

/// The state of the database server, or of the embedded database's file.
#[derive(Debug)]
pub struct DatabaseFacts {
    /// `PostgreSQL 17.2` or `SQLite 3.50.4`.
    pub server: String,
    /// Size of the whole database, in bytes.
    pub bytes: u64,
    /// The server's time; `None` for SQLite.
    pub now: Option<Timestamp>,
    /// Connections that are in use and the most there may be; `None` for SQLite.
    pub connections: Option<(u64, u64)>,
    /// The first damage of the file; `None` also if the file is too large to be read through within
    /// the time bound, and for PostgreSQL.
    pub damage: Option<String>,
}

const POSTGRES: &str = "SELECT current_setting('server_version') AS version, \
    pg_database_size(current_database()) AS bytes, \
    CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now, \
    (SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used, \
    CAST(current_setting('max_connections') AS BIGINT) AS most";
const SQLITE: &str = "SELECT sqlite_version() AS version, page_count * page_size AS bytes \
    FROM pragma_page_count(), pragma_page_size()";
const DAMAGE: &str = "SELECT quick_check AS found FROM pragma_quick_check LIMIT 1";
/// A few gigabytes.
const LONGEST_CHECK: Duration = Duration::from_secs(10);

/// The server's time.
const NOW: &str = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now";

impl Store {
    /// The time for what nodes do for each other, of which one may have a wrong clock: the
    /// server's. `own` with the embedded database, which has one node.
    pub async fn shared_time(&self, own: Timestamp) -> Result<Timestamp, StoreError> {
        if self.backend() == Backend::Sqlite {
            return Ok(own);
        }
        let row = sqlx::query(NOW).fetch_one(&mut *self.reader().await?).await?;
        Fields { row: &row, table: "pg_settings" }.time("now")
    }

    /// What the database says of itself.
    pub async fn facts(&self) -> Result<DatabaseFacts, StoreError> {
        let mut tx = self.read().await?;
        match self.backend() {
            Backend::Postgres => postgres(&mut tx).await,
            Backend::Sqlite => sqlite(&mut tx).await,
        }
    }
}

async fn postgres(tx: &mut Transaction<'static, Any>) -> Result<DatabaseFacts, StoreError> {
    let row = sqlx::query(POSTGRES).fetch_one(&mut **tx).await?;
    let fields = Fields { row: &row, table: "pg_settings" };
    Ok(DatabaseFacts {
        server: format!("PostgreSQL {}", fields.text("version")?),
        bytes: fields.number("bytes")?,
        now: Some(fields.time("now")?),
        connections: Some((fields.number("used")?, fields.number("most")?)),
        damage: None,
    })
}

async fn sqlite(tx: &mut Transaction<'static, Any>) -> Result<DatabaseFacts, StoreError> {
    let row = sqlx::query(SQLITE).fetch_one(&mut **tx).await?;
    let fields = Fields { row: &row, table: "pragma" };
    let (server, bytes) = (format!("SQLite {}", fields.text("version")?), fields.number("bytes")?);
    let damage =
        match tokio::time::timeout(LONGEST_CHECK, sqlx::query(DAMAGE).fetch_one(&mut **tx)).await {
            Ok(row) => Some(Fields { row: &row?, table: "pragma" }.text("found")?)
                .filter(|found| found != "ok"),
            Err(_) => None,
        };
    Ok(DatabaseFacts { server, bytes, now: None, connections: None, damage })
}
