//! Brings a database to this program's schema, and refuses one that differs from it.
//!
//! Migrations are the twin files of `migrations/`, built into the binary. All missing ones are
//! applied in one transaction under one lock: data definition is transactional on both back ends,
//! so a crash leaves the old schema, and two processes that start at once do the work once.
//! `schema_history` records what was applied, with a checksum of each file.

use sha2::{Digest, Sha256};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Executor};

use super::column::{Fields, Values};
use super::error::{SchemaError, StoreError};
use crate::domain::clock::{Clock, SystemClock};
use crate::store::{Backend, Store};

struct Migration {
    version: i64,
    name: &'static str,
    postgres: &'static str,
    sqlite: &'static str,
}

macro_rules! migration {
    ($version:literal, $name:literal) => {
        Migration {
            version: $version,
            name: $name,
            postgres: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/migrations/postgres/",
                $name,
                ".sql"
            )),
            sqlite: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/migrations/sqlite/",
                $name,
                ".sql"
            )),
        }
    };
}

/// Every migration, in order. A file that has been released is never changed: add another.
const MIGRATIONS: &[Migration] = &[
    migration!(1, "0001_configuration"),
    migration!(2, "0002_accounting"),
    migration!(4, "0004_rules"),
    migration!(5, "0005_statistics"),
    migration!(6, "0006_manage"),
    migration!(8, "0008_totals"),
    migration!(9, "0009_messages"),
    migration!(10, "0010_retried"),
    migration!(11, "0011_days"),
    migration!(12, "0012_prices"),
    migration!(13, "0013_rights"),
    migration!(14, "0014_vault"),
    migration!(15, "0015_provider_off"),
    migration!(16, "0016_log_request"),
    migration!(19, "0019_opening_balances"),
    migration!(20, "0020_partitions"),
    migration!(21, "0021_ledger_view"),
    migration!(22, "0022_retried_sums"),
    migration!(23, "0023_late_costs"),
    migration!(24, "0024_streaming_content"),
    migration!(25, "0025_users_share"),
    migration!(26, "0026_admission"),
];

/// One migration in `schema_history`.
struct Applied {
    version: i64,
    name: String,
    checksum: String,
    finished: bool,
}

impl Migration {
    fn sql(&self, backend: Backend) -> &'static str {
        match backend {
            Backend::Postgres => self.postgres,
            Backend::Sqlite => self.sqlite,
        }
    }

    fn checksum(&self, backend: Backend) -> String {
        hex::encode(Sha256::digest(self.sql(backend)))
    }
}

const HISTORY: &str = "CREATE TABLE IF NOT EXISTS schema_history (version BIGINT NOT NULL PRIMARY \
                       KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, finished BIGINT NOT NULL, \
                       applied_at BIGINT NOT NULL)";

/// Held by PostgreSQL's migrating session; any otherwise unused number.
pub(in crate::store) const LOCK: &str = "SELECT CAST(pg_advisory_xact_lock(7215836401) AS TEXT)";

/// Lifts a bound of PostgreSQL for statements, which roles and databases can have: an index of a
/// large table takes minutes, and the next node waits for it.
pub(in crate::store) const UNBOUNDED: &str = "SET LOCAL statement_timeout = 0";

/// The row of the history that marks an unfinished `tollgate move` into the database. Earlier
/// versions treat it as an interrupted migration, and do not start either.
const MOVE: i64 = 0;

impl Store {
    /// Applies the missing migrations and returns their names; none if the database is up to date.
    /// On PostgreSQL, also makes the partitions of this month and the next.
    ///
    /// # Errors
    /// [`StoreError::Schema`] when the database is newer or half migrated: then nothing is changed.
    pub async fn migrate(&self) -> Result<Vec<String>, StoreError> {
        let applied = self.apply_missing().await?;
        self.begin_partitions(SystemClock.now()).await;
        Ok(applied)
    }

    async fn apply_missing(&self) -> Result<Vec<String>, StoreError> {
        let backend = self.backend();
        let mut tx = self.write().await?;
        if backend == Backend::Postgres {
            tx.execute(UNBOUNDED).await?;
            tx.execute(LOCK).await?;
        }
        let applied = history(&mut tx, backend).await?;
        let missing = match compare(&applied, backend) {
            Ok(()) => return Ok(Vec::new()),
            Err(SchemaError::Behind { missing }) => missing,
            Err(other) => return Err(other.into()),
        };
        tx.execute(HISTORY).await?;
        for migration in MIGRATIONS.iter().filter(|m| missing.iter().any(|name| name == m.name)) {
            sqlx::raw_sql(migration.sql(backend)).execute(&mut *tx).await?;
            record(&mut tx, migration, backend).await?;
        }
        tx.commit().await?;
        Ok(missing)
    }

    /// Whether the database is exactly at this program's schema.
    ///
    /// # Errors
    /// [`StoreError::Schema`] saying how it differs and what to do about it.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        let mut tx = self.read().await?;
        let applied = history(&mut tx, self.backend()).await?;
        tx.commit().await?;
        Ok(compare(&applied, self.backend())?)
    }
}

impl Store {
    /// As [`Store::check_schema`], for the move itself: ignores the mark of a move in progress.
    pub(in crate::store) async fn check_schema_beneath_move(&self) -> Result<(), StoreError> {
        let mut tx = self.read().await?;
        let (_, schema) = beneath_move(&mut tx, self.backend()).await?;
        tx.commit().await?;
        Ok(schema?)
    }
}

impl Store {
    /// The newest migration that was applied; 0 when there is none.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub async fn schema_version(&self) -> Result<i64, StoreError> {
        let mut tx = self.read().await?;
        let applied = history(&mut tx, self.backend()).await?;
        tx.commit().await?;
        Ok(applied.iter().map(|row| row.version).max().unwrap_or(0))
    }

    /// The newest migration that this program has.
    #[must_use]
    pub fn known_schema() -> i64 {
        MIGRATIONS.last().map_or(0, |migration| migration.version)
    }
}

/// Whether the database carries the mark of a move, and the state of its schema otherwise.
pub(in crate::store) async fn beneath_move(
    connection: &mut AnyConnection,
    backend: Backend,
) -> Result<(bool, Result<(), SchemaError>), StoreError> {
    let mut applied = history(connection, backend).await?;
    let all = applied.len();
    applied.retain(|row| row.version != MOVE);
    Ok((applied.len() < all, compare(&applied, backend)))
}

/// Prevents every gateway from starting on the database.
pub(in crate::store) async fn mark_move(connection: &mut AnyConnection) -> Result<(), StoreError> {
    let mut values = Values::default();
    values.int(MOVE).text("a move from SQLite").text("").flag(false).time(SystemClock.now());
    sqlx::query_with(RECORD, values.into_arguments()).execute(connection).await?;
    Ok(())
}

/// Allows gateways to start.
pub(in crate::store) async fn unmark_move(
    connection: &mut AnyConnection,
) -> Result<(), StoreError> {
    let mut values = Values::default();
    values.int(MOVE);
    sqlx::query_with("DELETE FROM schema_history WHERE version = $1", values.into_arguments())
        .execute(connection)
        .await?;
    Ok(())
}

const RECORD: &str = "INSERT INTO schema_history (version, name, checksum, finished, applied_at) \
                      VALUES ($1, $2, $3, $4, $5)";

async fn record(
    connection: &mut AnyConnection,
    migration: &Migration,
    backend: Backend,
) -> Result<(), StoreError> {
    let mut values = Values::default();
    values.int(migration.version).text(migration.name).text(&migration.checksum(backend));
    values.flag(true).time(SystemClock.now());
    sqlx::query_with(RECORD, values.into_arguments()).execute(connection).await?;
    Ok(())
}

/// The applied migrations, oldest first; none on an empty database.
async fn history(
    connection: &mut AnyConnection,
    backend: Backend,
) -> Result<Vec<Applied>, StoreError> {
    if !has_table(connection, backend, "schema_history").await? {
        // Tables of this program without a history: created, or half removed, by hand.
        for name in ["users", "ledger"] {
            if has_table(connection, backend, name).await? {
                let why = "there are tables but no record of migrations".to_owned();
                return Err(SchemaError::HalfMigrated { name: format!("table {name}"), why }.into());
            }
        }
        return Ok(Vec::new());
    }
    let sql = "SELECT version, name, checksum, finished FROM schema_history ORDER BY version";
    let rows = sqlx::query(sql).fetch_all(connection).await?;
    rows.iter().map(read_applied).collect()
}

fn read_applied(row: &AnyRow) -> Result<Applied, StoreError> {
    let fields = Fields { row, table: "schema_history" };
    Ok(Applied {
        version: fields.int("version")?,
        name: fields.text("name")?,
        checksum: fields.text("checksum")?,
        finished: fields.flag("finished")?,
    })
}

async fn has_table(
    connection: &mut AnyConnection,
    backend: Backend,
    name: &str,
) -> Result<bool, StoreError> {
    let sql = match backend {
        Backend::Sqlite => {
            "SELECT COUNT(*) AS found FROM sqlite_master WHERE type = 'table' AND name = $1"
        }
        Backend::Postgres => {
            "SELECT COUNT(*) AS found FROM pg_catalog.pg_tables \
             WHERE schemaname = current_schema() AND tablename = $1"
        }
    };
    let mut values = Values::default();
    values.text(name);
    let row =
        sqlx::query_with(AssertSqlSafe(sql), values.into_arguments()).fetch_one(connection).await?;
    Ok(Fields { row: &row, table: "catalogue" }.int("found")? > 0)
}

fn compare(applied: &[Applied], backend: Backend) -> Result<(), SchemaError> {
    let half = |name: &str, why: &str| SchemaError::HalfMigrated {
        name: name.to_owned(),
        why: why.to_owned(),
    };
    let known = MIGRATIONS.last().map_or(0, |m| m.version);
    if let Some(newest) = applied.iter().map(|a| a.version).max().filter(|&found| found > known) {
        return Err(SchemaError::Newer { found: newest, known });
    }
    if applied.iter().any(|row| row.version == MOVE) {
        return Err(SchemaError::HalfMoved);
    }
    for row in applied {
        if !row.finished {
            return Err(half(&row.name, "a migration was begun and not finished"));
        }
        match MIGRATIONS.iter().find(|m| m.version == row.version) {
            Some(ours) if ours.checksum(backend) == row.checksum => {}
            Some(_) => {
                return Err(half(
                    &row.name,
                    "a migration was applied with another content than this program's",
                ));
            }
            None => {
                return Err(half(
                    &row.name,
                    "a migration was applied that this program does not have",
                ));
            }
        }
    }
    let done = |m: &&Migration| applied.iter().any(|a| a.version == m.version);
    let missing: Vec<&Migration> = MIGRATIONS.iter().filter(|m| !done(m)).collect();
    let newest = applied.iter().map(|a| a.version).max().unwrap_or(0);
    match missing.first() {
        None => Ok(()),
        Some(gap) if gap.version < newest => Err(half(gap.name, "a migration was left out")),
        Some(_) => Err(SchemaError::Behind {
            missing: missing.iter().map(|m| m.name.to_owned()).collect(),
        }),
    }
}
