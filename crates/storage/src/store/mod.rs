//! The database: schema, migrations and every SQL statement. One code for PostgreSQL and SQLite.
//!
//! All statements are written once, for `sqlx::Any` (the ledger's writer uses each database's own
//! driver, and copies rows to PostgreSQL), in the SQL that both back ends share (`$n` values, `ON
//! CONFLICT`, `RETURNING`, row values). They differ ([`Backend`]) only in locks and catalogue
//! look-ups. Nothing here is on the request path: the data plane reads a snapshot made from
//! [`Store::load_all`] and writes through the ledger's journal.

mod database_copy;
mod engine;
mod hold;
mod ledger;
mod partitions;
pub mod peer;
mod replica;
mod report_slots;
mod reports;
mod rows;
pub mod transfer;

use std::path::Path;

use sqlx::pool::PoolConnection;
use sqlx::{Any, Transaction};

use crate::domain::secret::Secret;

use hold::Hold;
use report_slots::ReportSlots;

pub use engine::error::{SchemaError, StoreError};
pub use engine::facts::DatabaseFacts;
pub use engine::listen::Changes;
pub use engine::tx::Tx;
pub use ledger::days::SummedDay;
pub use ledger::late::LateCosts;
pub use ledger::log_row::{LogRow, Used};
pub use ledger::opening::OpeningBalance;
pub use ledger::recent::RecentRequest;
pub use ledger::reprice::UnpricedOf;
pub use ledger::reprice_parts::UnpricedParts;
pub use ledger::spend::{SpendLook, SpendRow, SpendSeen, SpendTotal};
pub use ledger::totals::UsageTotal;
pub use replica::ReplicaState;
pub use report_slots::{ReportHolder, ReportSlot};
pub use reports::cache_misses::{CacheMisses, MissAsk, MissLine};
pub use reports::key_statistics::{KeyStatistics, ModelStatistics};
pub use reports::last_use::LastUse;
pub use reports::log_filter::LogFilter;
pub use reports::log_sums::LogSummary;
pub use reports::logs::{LogPage, LogPageAsk};
pub use reports::overview::{Figures, OverviewAsk, OverviewFound, TopEntry};
pub use reports::session_figures::{SessionFigures, SessionQuery};
pub use reports::statistics::{GroupBy, Series, SeriesAsk};
pub use rows::account_objects::{AccountObject, ObjectPage};
pub use rows::audit::{AuditAsk, AuditEntry, AuditPage, AuditRow};
pub use rows::client_versions::{AgreedClient, SeenClient};
pub use rows::credential_uses::CredentialUse;
pub use rows::everything::{Everything, WholeDatabase};
pub use rows::invoice_sources::StoredInvoiceSource;
pub use rows::jobs::Job;
pub use rows::messages::{Clip, MessageCursor, StoredMessage};
pub use rows::notifications::{StoredNotifications, UserSum};
pub use rows::provider_states::{LOOK_MS, ProviderLooks};
pub use rows::providers::StoredProvider;
pub use rows::sealed::{SealedOwner, SealedText};
pub use rows::web_session::WebSession;

/// A handle to the database; clones share the connections.
#[derive(Clone)]
pub struct Store {
    pools: engine::connect::Pools,
    hold: Hold,
    replica: Option<replica::Replica>,
    slots: ReportSlots,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("backend", &self.pools.backend).finish_non_exhaustive()
    }
}

/// Which database it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The embedded database, a file in the data directory; one node only.
    Sqlite,
    /// A PostgreSQL server, which several nodes may share.
    Postgres,
}

impl Backend {
    /// A write transaction: SQLite locks at once; otherwise two readers that become writers would
    /// block each other.
    const fn begin_write(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// A transaction whose reads all see the database as of one moment.
    const fn begin_read(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN",
            // A generic plan for any time range is bad for most: each query is planned for its
            // values.
            Self::Postgres => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL plan_cache_mode = \
                 force_custom_plan"
            }
        }
    }

    /// The same for a report, with a time limit for each of its statements. SQLite has none: the
    /// administration stops waiting, and the report keeps its slot until it ends.
    const fn begin_report(self) -> &'static str {
        match self {
            Self::Sqlite => self.begin_read(),
            Self::Postgres => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL plan_cache_mode = \
                 force_custom_plan; SET LOCAL statement_timeout = '20s'"
            }
        }
    }

    /// Why there is no connection. On PostgreSQL, none in time means a server that does not answer
    /// (on SQLite a queue of writers), and any error of a new connection is a refusal.
    fn acquire_error(self, error: sqlx::Error) -> StoreError {
        match (self, error) {
            (Self::Postgres, sqlx::Error::PoolTimedOut) => {
                StoreError::Unreachable { what: "no connection could be had in time".to_owned() }
            }
            (Self::Postgres, other) => match other.into() {
                StoreError::Database { what } => StoreError::Unreachable { what },
                known => known,
            },
            (Self::Sqlite, other) => other.into(),
        }
    }
}

impl Store {
    fn of(pools: engine::connect::Pools) -> Self {
        let slots = ReportSlots::of(pools.read.options().get_max_connections());
        Self { pools, hold: Hold::default(), replica: None, slots }
    }

    /// Opens the embedded database in `dir`, creating both if needed. Does not migrate.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] when the directory or file cannot be used.
    pub async fn open_sqlite(dir: &Path) -> Result<Self, StoreError> {
        engine::connect::sqlite(dir).await.map(Self::of)
    }

    /// Whether there is an embedded database in `dir`.
    ///
    /// # Errors
    /// It cannot be seen, for example by another user than the gateway's.
    pub fn exists(dir: &Path) -> std::io::Result<bool> {
        match dir.join(engine::connect::FILE_NAME).metadata() {
            Ok(found) => Ok(found.is_file()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Connects to the PostgreSQL of `url` (`postgres://user:password@host/database?sslmode=…`).
    /// Does not migrate.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] when no connection is possible now.
    pub async fn open_postgres(url: &Secret, max_connections: u32) -> Result<Self, StoreError> {
        match Self::find_postgres(url, max_connections).await? {
            (store, None) => Ok(store),
            (_, Some(away)) => Err(away),
        }
    }

    /// The same, for a caller that can wait for the server: if no server answers now (refused, no
    /// answer in time, no such name, or it is starting or stopping), returns the reason beside a
    /// store that connects when it is used.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] when the address is invalid, or the server answers and refuses
    /// the connection: wrong credentials, no such database.
    pub async fn find_postgres(
        url: &Secret,
        max_connections: u32,
    ) -> Result<(Self, Option<StoreError>), StoreError> {
        let (pools, away) = engine::connect::postgres(url, max_connections).await?;
        Ok((Self::of(pools), away))
    }

    /// Which database the store is connected to.
    pub fn backend(&self) -> Backend {
        self.pools.backend
    }

    /// Whether the database answers now.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").execute(&mut *self.reader().await?).await?;
        Ok(())
    }

    /// Closes every connection; waits for those in use.
    pub async fn close(&self) {
        if let Some(ledger) = &self.pools.ledger {
            ledger.close().await;
        }
        if let Some(copy) = &self.pools.copy {
            copy.close().await;
        }
        if let Some(replica) = &self.replica {
            replica.close().await;
        }
        self.pools.read.close().await;
        self.pools.write.close().await;
    }

    /// A connection for one read.
    async fn reader(&self) -> Result<PoolConnection<Any>, StoreError> {
        self.hold.check()?;
        self.pools.read.acquire().await.map_err(|error| self.pools.backend.acquire_error(error))
    }

    /// A connection for one statement that writes.
    async fn writer(&self) -> Result<PoolConnection<Any>, StoreError> {
        self.hold.check()?;
        self.pools.write.acquire().await.map_err(|error| self.pools.backend.acquire_error(error))
    }

    /// A transaction for writing. Dropping it rolls it back.
    async fn write(&self) -> Result<Transaction<'static, Any>, StoreError> {
        self.hold.check()?;
        let backend = self.pools.backend;
        self.pools
            .write
            .begin_with(backend.begin_write())
            .await
            .map_err(|error| backend.acquire_error(error))
    }

    /// A transaction for several reads as of one moment.
    async fn read(&self) -> Result<Transaction<'static, Any>, StoreError> {
        self.begin_reading(self.pools.backend.begin_read()).await
    }

    /// The same for a report: what one may ask for is bounded, and so is each statement's time.
    async fn report(&self) -> Result<Transaction<'static, Any>, StoreError> {
        self.begin_reading(self.pools.backend.begin_report()).await
    }

    async fn begin_reading(
        &self,
        begin: &'static str,
    ) -> Result<Transaction<'static, Any>, StoreError> {
        self.hold.check()?;
        let begun = self.pools.read.begin_with(begin).await;
        begun.map_err(|error| self.pools.backend.acquire_error(error))
    }

    /// A slot for a report, which its holder keeps until the report has ended; `None` if none
    /// became free in time.
    pub async fn report_slot(&self, holder: ReportHolder) -> Option<ReportSlot> {
        self.slots.take(holder).await
    }
}
