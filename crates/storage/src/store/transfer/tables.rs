//! Which tables are copied, with which columns, in which order.
//!
//! The columns are read from the databases, so that none can be missed. The tables are listed,
//! because those that others refer to come first; a test compares the list with the migrations.

use sqlx::{AnyConnection, AssertSqlSafe, Row};

use super::error::TransferError;
use crate::store::Backend;
use crate::store::engine::column::Values;
use crate::store::engine::error::StoreError;

/// Every table except `_sqlx_migrations`, which each database has itself. Tables that others refer
/// to come first.
pub(super) const TABLES: [&str; 30] = [
    "users",
    "api_keys",
    "providers",
    "invoice_sources",
    "model_prices",
    "sensitive_words",
    "error_rules",
    "system_settings",
    "notification_settings",
    "sealing_key",
    "config_version",
    "web_sessions",
    "audit_log",
    "client_versions",
    "jobs",
    "sent_notices",
    "opening_balances",
    "late_costs",
    "usage_totals",
    "hourly_users",
    "hourly_cache_misses",
    "summed_days",
    "daily_sums",
    "hourly_sums",
    "ledger",
    "request_log",
    "session_messages",
    "account_objects",
    "credential_uses",
    "provider_states",
];

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Int,
    Text,
    Bytes,
}

/// SQLite's ledger is a view, and its part that is a table of its own is copied with it.
const VIEW: &str = "ledger";
const VIEW_KEY: &str = "request_id";
const PART: &str = "ledger_archive";

#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
    /// The target's integer has two bytes.
    pub(super) is_small: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: Vec<Column>,
    /// The columns of the primary key, in its order: indexes into `columns`.
    pub(super) key: Vec<usize>,
}

impl Table {
    /// The columns as a statement lists them.
    pub(super) fn column_list(&self) -> String {
        quoted(self.columns.iter())
    }

    /// The primary key as a statement lists it.
    pub(super) fn key_list(&self) -> String {
        quoted(self.key_columns())
    }

    pub(super) fn key_columns(&self) -> impl Iterator<Item = &Column> {
        self.key.iter().filter_map(|&at| self.columns.get(at))
    }

    /// The column that gets a new number for each new row, if there is one.
    pub(super) fn has_id(&self) -> bool {
        matches!(self.key[..], [only] if self.columns.get(only).is_some_and(|c| c.name == "id" && !c.is_small))
    }
}

fn quoted<'a>(columns: impl Iterator<Item = &'a Column>) -> String {
    columns.map(|column| format!("\"{}\"", column.name)).collect::<Vec<_>>().join(", ")
}

/// The names of a database's tables.
pub(super) async fn names(
    connection: &mut AnyConnection,
    backend: Backend,
) -> Result<Vec<String>, StoreError> {
    let sql = match backend {
        Backend::Sqlite => {
            "SELECT CAST(name AS TEXT) FROM sqlite_master \
             WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        }
        Backend::Postgres => {
            "SELECT CAST(tablename AS TEXT) FROM pg_catalog.pg_tables \
             WHERE schemaname = current_schema()"
        }
    };
    let rows = sqlx::query(sql).fetch_all(connection).await?;
    let names = rows.iter().map(|row| row.try_get(0).map_err(StoreError::from));
    names.filter(|name: &Result<String, _>| !name.as_ref().is_ok_and(|n| n == PART)).collect()
}

/// The tables of the embedded database.
pub(super) async fn of_source(connection: &mut AnyConnection) -> Result<Vec<Table>, TransferError> {
    let mut tables = Vec::with_capacity(TABLES.len());
    for name in TABLES {
        let rows = described(
            connection,
            "SELECT CAST(name AS TEXT), CAST(type AS TEXT), CAST(pk AS BIGINT) \
             FROM pragma_table_info($1)",
            name,
        )
        .await?;
        let mut columns = Vec::with_capacity(rows.len());
        let mut key = Vec::new();
        for (at, (column, declared, place)) in rows.into_iter().enumerate() {
            let kind = match declared.as_str() {
                "INTEGER" | "BIGINT" => ColumnKind::Int,
                "TEXT" => ColumnKind::Text,
                "BLOB" => ColumnKind::Bytes,
                other => {
                    return Err(TransferError::Shape(format!(
                        "{name}.{column} is of the type {other}"
                    )));
                }
            };
            let is_key = place > 0 || (name == VIEW && column == VIEW_KEY);
            columns.push(Column { name: column, kind, is_small: false });
            if is_key {
                key.push((place, at));
            }
        }
        if key.is_empty() {
            return Err(TransferError::Shape(format!("{name} is missing, or has no primary key")));
        }
        key.sort_unstable();
        tables.push(Table { name, columns, key: key.into_iter().map(|(_, at)| at).collect() });
    }
    Ok(tables)
}

/// Compares the tables with those of PostgreSQL, and takes over the width of its integers.
pub(super) async fn fit_target(
    tables: &mut [Table],
    connection: &mut AnyConnection,
) -> Result<(), TransferError> {
    for table in tables {
        let sql = "SELECT CAST(column_name AS TEXT), CAST(data_type AS TEXT), CAST(0 AS BIGINT) \
                   FROM information_schema.columns \
                   WHERE table_schema = current_schema() AND table_name = $1";
        let found = described(connection, sql, table.name).await?;
        let name = table.name;
        for column in &mut table.columns {
            let Some((_, kind, _)) = found.iter().find(|(there, ..)| *there == column.name) else {
                return Err(TransferError::Shape(format!(
                    "PostgreSQL has no {name}.{}",
                    column.name
                )));
            };
            column.is_small = kind == "smallint";
            let fits = match column.kind {
                ColumnKind::Int => kind == "bigint" || kind == "smallint",
                ColumnKind::Text => kind == "text",
                ColumnKind::Bytes => kind == "bytea",
            };
            if !fits {
                return Err(TransferError::Shape(format!(
                    "{name}.{} is {kind} in PostgreSQL",
                    column.name
                )));
            }
        }
        if let Some((more, ..)) =
            found.iter().find(|(there, ..)| table.columns.iter().all(|c| c.name != *there))
        {
            return Err(TransferError::Shape(format!("SQLite has no {name}.{more}")));
        }
    }
    Ok(())
}

async fn described(
    connection: &mut AnyConnection,
    sql: &'static str,
    table: &str,
) -> Result<Vec<(String, String, i64)>, StoreError> {
    let mut values = Values::default();
    values.text(table);
    let rows =
        sqlx::query_with(AssertSqlSafe(sql), values.into_arguments()).fetch_all(connection).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect()
}

/// How many rows a table has.
pub(super) async fn rows_of(
    connection: &mut AnyConnection,
    table: &str,
) -> Result<i64, StoreError> {
    let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
    Ok(sqlx::query(sql).fetch_one(connection).await?.try_get(0)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::store::Store;

    #[tokio::test]
    async fn every_table_of_the_migrations_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_sqlite(dir.path()).await.unwrap();
        store.migrate().await.unwrap();
        let mut connection = store.reader().await.unwrap();
        let mut found: BTreeSet<String> =
            names(&mut connection, Backend::Sqlite).await.unwrap().into_iter().collect();
        assert!(found.remove("_sqlx_migrations"));
        let listed: BTreeSet<String> = TABLES.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(
            found, listed,
            "a new table gets its line in TABLES, behind those that it refers to"
        );
        assert_eq!(of_source(&mut connection).await.unwrap().len(), TABLES.len());
    }
}
