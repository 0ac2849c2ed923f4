//! Brings a database to this program's schema, and refuses one that differs from it.
//!
//! Migrations are the twin files of `migrations/`, built into the binary, and sqlx applies them:
//! `_sqlx_migrations` records what was applied, with a checksum of each file. All missing ones are
//! applied in one transaction under one lock: data definition is transactional on both back ends,
//! so a crash leaves the old schema, and two processes that start at once do the work once. sqlx's
//! own lock would not do: a bound of the server for statements ends its wait, and for SQLite it has
//! none. Beside sqlx, this file says how a database differs and what to do about it.

use sqlx::migrate::{Migrate as _, MigrateError, Migration, MigrationType};
use sqlx::{AnyConnection, AssertSqlSafe, Executor, SqlSafeStr as _};

use super::column::{Fields, Values};
use super::error::{SchemaError, StoreError};
use crate::domain::clock::{Clock, SystemClock};
use crate::store::{Backend, Store};

/// A version, a name, and the files for PostgreSQL and for SQLite.
type Twin = (i64, &'static str, [&'static str; 2]);

macro_rules! migration {
    ($version:literal, $name:literal) => {
        (
            $version,
            $name,
            [
                include_str!(concat!("../../../../../migrations/postgres/", $name, ".sql")),
                include_str!(concat!("../../../../../migrations/sqlite/", $name, ".sql")),
            ],
        )
    };
}

/// Every migration, in order. A file that has been released is never changed: add another.
const MIGRATIONS: &[Twin] = &[
    migration!(1, "0001_schema"),
    migration!(2, "0002_features"),
    migration!(3, "0003_invoice_sources"),
    migration!(4, "0004_unpriced_parts"),
    migration!(5, "0005_cache_misses"),
    migration!(6, "0006_anthropic_host"),
    migration!(7, "0007_provider_fields"),
    migration!(8, "0008_account_objects"),
    migration!(9, "0009_provider_credentials"),
    migration!(10, "0010_provider_websocket"),
    migration!(11, "0011_provider_tls"),
    migration!(12, "0012_health"),
];

/// The table of sqlx.
const HISTORY: &str = "_sqlx_migrations";

/// One migration in it.
struct Applied {
    version: i64,
    name: String,
    checksum: Vec<u8>,
    finished: bool,
}

/// Held by PostgreSQL's migrating session; any otherwise unused number.
pub(in crate::store) const LOCK: &str = "SELECT CAST(pg_advisory_xact_lock(7215836401) AS TEXT)";

/// Lifts a bound of PostgreSQL for statements, which roles and databases can have: an index of a
/// large table takes minutes, and the next node waits for it.
pub(in crate::store) const UNBOUNDED: &str = "SET LOCAL statement_timeout = 0";

/// The version of the row that marks an unfinished `tollgate move` into the database. sqlx treats
/// it as a migration that was interrupted.
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
        let (ours, applied) = (known(backend), history(&mut tx, backend).await?);
        let missing = match compare(&applied, &ours) {
            Ok(()) => return Ok(Vec::new()),
            Err(SchemaError::Behind { missing }) => missing,
            Err(other) => return Err(other.into()),
        };
        tx.ensure_migrations_table(HISTORY).await.map_err(failed)?;
        for own in ours.iter().filter(|own| missing.contains(&own.description.to_string())) {
            tx.apply(HISTORY, own).await.map_err(failed)?;
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
        Ok(compare(&applied, &known(self.backend()))?)
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
    pub async fn schema_version(&self) -> Result<i64, StoreError> {
        let mut tx = self.read().await?;
        let applied = history(&mut tx, self.backend()).await?;
        tx.commit().await?;
        Ok(newest(&applied))
    }

    /// The newest migration that this program has.
    pub fn known_schema() -> i64 {
        MIGRATIONS.last().map_or(0, |(version, ..)| *version)
    }
}

/// This program's migrations for a back end.
fn known(backend: Backend) -> Vec<Migration> {
    let made = |(version, name, [postgres, sqlite]): &Twin| {
        let sql = match backend {
            Backend::Postgres => *postgres,
            Backend::Sqlite => *sqlite,
        };
        let kind = MigrationType::Simple;
        Migration::new(*version, (*name).into(), kind, sql.into_sql_str(), false)
    };
    MIGRATIONS.iter().map(made).collect()
}

fn failed(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
        other => StoreError::Database { what: other.to_string() },
    }
}

fn newest(applied: &[Applied]) -> i64 {
    applied.iter().map(|row| row.version).max().unwrap_or(0)
}

/// Whether the database carries the mark of a move, and the state of its schema otherwise.
pub(in crate::store) async fn beneath_move(
    connection: &mut AnyConnection,
    backend: Backend,
) -> Result<(bool, Result<(), SchemaError>), StoreError> {
    let mut applied = history(connection, backend).await?;
    let all = applied.len();
    applied.retain(|row| row.version != MOVE);
    Ok((applied.len() < all, compare(&applied, &known(backend))))
}

/// Prevents every gateway from starting on the database, which is PostgreSQL's.
pub(in crate::store) async fn mark_move(connection: &mut AnyConnection) -> Result<(), StoreError> {
    let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, \
               execution_time) VALUES ($1, 'a move from SQLite', FALSE, '', 0)";
    sqlx::query(sql).bind(MOVE).execute(connection).await?;
    Ok(())
}

/// Allows gateways to start.
pub(in crate::store) async fn unmark_move(
    connection: &mut AnyConnection,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM _sqlx_migrations WHERE version = $1";
    sqlx::query(sql).bind(MOVE).execute(connection).await?;
    Ok(())
}

/// The applied migrations, oldest first; none on an empty database.
async fn history(
    connection: &mut AnyConnection,
    backend: Backend,
) -> Result<Vec<Applied>, StoreError> {
    if !has_table(connection, backend, HISTORY).await? {
        // Tables of this program without a history: created, or half removed, by hand.
        for name in ["users", "hourly_sums"] {
            if has_table(connection, backend, name).await? {
                let why = "there are tables but no record of migrations".to_owned();
                return Err(SchemaError::HalfMigrated { name: format!("table {name}"), why }.into());
            }
        }
        return Ok(Vec::new());
    }
    let sql = "SELECT version, description, checksum, \
               CASE WHEN success THEN 1 ELSE 0 END AS finished \
               FROM _sqlx_migrations ORDER BY version";
    let mut applied = Vec::new();
    for row in &sqlx::query(sql).fetch_all(connection).await? {
        let fields = Fields { row, table: HISTORY };
        applied.push(Applied {
            version: fields.int("version")?,
            name: fields.text("description")?,
            checksum: fields.blob("checksum")?,
            finished: fields.flag("finished")?,
        });
    }
    Ok(applied)
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

fn compare(applied: &[Applied], ours: &[Migration]) -> Result<(), SchemaError> {
    let half = |name: &str, why: &str| SchemaError::HalfMigrated {
        name: name.to_owned(),
        why: why.to_owned(),
    };
    let (found, known) = (newest(applied), ours.last().map_or(0, |own| own.version));
    if found > known {
        return Err(SchemaError::Newer { found, known });
    }
    if applied.iter().any(|row| row.version == MOVE) {
        return Err(SchemaError::HalfMoved);
    }
    for row in applied {
        let why = match ours.iter().find(|own| own.version == row.version) {
            _ if !row.finished => "a migration was begun and not finished",
            Some(own) if *own.checksum == *row.checksum => continue,
            Some(_) => "a migration was applied with another content than this program's",
            None => "a migration was applied that this program does not have",
        };
        return Err(half(&row.name, why));
    }
    let is_missing = |own: &&Migration| !applied.iter().any(|row| row.version == own.version);
    let missing: Vec<&Migration> = ours.iter().filter(is_missing).collect();
    match missing.first() {
        None => Ok(()),
        Some(gap) if gap.version < found => Err(half(&gap.description, "a migration was left out")),
        Some(_) => Err(SchemaError::Behind {
            missing: missing.iter().map(|own| own.description.to_string()).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(list: &[(i64, bool)]) -> Vec<Applied> {
        let of = |(version, finished): &(i64, bool)| {
            let ours = three();
            let own = ours.iter().find(|own| own.version == *version);
            let checksum = own.map_or_else(Vec::new, |own| own.checksum.to_vec());
            Applied { version: *version, name: version.to_string(), checksum, finished: *finished }
        };
        list.iter().map(of).collect()
    }

    fn three() -> Vec<Migration> {
        let made = |version: i64| {
            let name = format!("{version:04}_m").into();
            Migration::new(version, name, MigrationType::Simple, "SELECT 1".into_sql_str(), false)
        };
        vec![made(1), made(2), made(3)]
    }

    #[test]
    fn what_was_applied_is_compared_with_what_there_is() {
        let said = |list: &[(i64, bool)]| compare(&rows(list), &three()).err();
        let half = |found: Option<SchemaError>, text: &str| match found {
            Some(SchemaError::HalfMigrated { why, .. }) => assert!(why.contains(text), "{why}"),
            other => panic!("{other:?}"),
        };
        assert_eq!(said(&[(1, true), (2, true), (3, true)]), None);
        let behind = |names: &[&str]| {
            let missing = names.iter().map(|name| (*name).to_owned()).collect();
            Some(SchemaError::Behind { missing })
        };
        assert_eq!(said(&[(1, true), (2, true)]), behind(&["0003_m"]));
        assert_eq!(said(&[(1, true)]), behind(&["0002_m", "0003_m"]));
        half(said(&[(1, true), (3, true)]), "left out");
        half(said(&[(1, true), (2, false)]), "not finished");
        half(said(&[(-1, true)]), "does not have");
        assert_eq!(said(&[(MOVE, false)]), Some(SchemaError::HalfMoved));
        assert_eq!(said(&[(9, true)]), Some(SchemaError::Newer { found: 9, known: 3 }));
        let mut changed = rows(&[(1, true)]);
        changed[0].checksum.clear();
        half(compare(&changed, &three()).err(), "another content");
    }
}
