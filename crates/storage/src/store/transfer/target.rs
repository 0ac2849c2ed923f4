//! The target database: its content before the move, and the mark that it carries meanwhile.

use sqlx::postgres::PgConnectOptions;
use sqlx::{AnyConnection, AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, Row};

use super::error::TransferError;
use super::figures::DatabaseFigures;
use super::source::TransferSource;
use super::state::{self, Reached, TransferState};
use super::tables::{self, TABLES, Table};
use crate::domain::secret::Secret;
use crate::store::engine::connect::{POSTGRES_SETTINGS, SLOW};
use crate::store::engine::error::{SchemaError, StoreError};
use crate::store::engine::schema::{self, LOCK};
use crate::store::{Backend, Store};

/// Connections besides the one that writes rows.
const CONNECTIONS: u32 = 2;

/// The PostgreSQL database that is the target.
pub struct TransferTarget {
    pub(super) store: Store,
    /// The connection that writes rows.
    pub(super) connection: PgConnection,
    /// The source's tables, fitted to those of the target.
    pub(super) tables: Vec<Table>,
}

/// The content of a target.
#[derive(Debug)]
pub enum TargetStanding {
    /// No data; possibly tables.
    Empty,
    /// An unfinished move of this source. `changed`: the source has changed since.
    Begun {
        /// Whether the source's figures differ from those at the start of the move.
        changed: bool,
    },
    /// An unfinished move of another database, which was at this path.
    BegunByOther {
        /// The file of that database, as the other move stored it.
        path: String,
    },
    /// Data, and no mark of a move.
    Filled(Vec<Filled>),
}

/// A table with rows.
#[derive(Debug)]
pub struct Filled {
    /// The table's name.
    pub table: &'static str,
    /// Its number of rows, above 0.
    pub rows: i64,
}

impl TransferTarget {
    /// Connects. Changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] when no connection can be made.
    pub async fn connect(url: &Secret) -> Result<Self, TransferError> {
        let store = Store::open_postgres(url, CONNECTIONS).await?;
        let options: PgConnectOptions = url.expose().parse()?;
        let options = options
            .log_statements(log::LevelFilter::Trace)
            .log_slow_statements(log::LevelFilter::Warn, SLOW);
        let refused = |error| Backend::Postgres.acquire_error(error);
        let mut connection = PgConnection::connect_with(&options).await.map_err(refused)?;
        connection.execute(POSTGRES_SETTINGS).await?;
        Ok(Self { store, connection, tables: Vec::new() })
    }

    /// The present content, compared with the source. Changes nothing.
    ///
    /// # Errors
    /// When the schema is newer than this program or half migrated; [`StoreError`] of the read.
    pub async fn standing(
        &self,
        source: &TransferSource,
        figures: Option<&DatabaseFigures>,
    ) -> Result<TargetStanding, TransferError> {
        let mut tx = self.store.read().await?;
        let standing = standing(&mut tx, source, figures).await?;
        tx.commit().await?;
        Ok(standing)
    }

    /// Creates the schema, and marks the database: from then on no gateway starts on it.
    ///
    /// # Errors
    /// When it has data by now; [`StoreError`] of the write.
    pub async fn begin(
        &mut self,
        source: &TransferSource,
        figures: &DatabaseFigures,
        path: &str,
    ) -> Result<(), TransferError> {
        self.store.migrate().await?;
        self.store.make_months(&source.days().await?).await?;
        let mut tx = self.store.write().await?;
        tx.execute(LOCK).await?;
        if !matches!(standing(&mut tx, source, Some(figures)).await?, TargetStanding::Empty) {
            return Err(TransferError::Interfered);
        }
        tx.execute(state::CREATE).await?;
        let begun = TransferState {
            source: source.identity.clone(),
            path: path.to_owned(),
            digest: figures.digest(),
            at: Reached { table: TABLES[0].to_owned(), ..Reached::default() },
        };
        state::insert(&mut tx, &begun).await?;
        schema::mark_move(&mut tx).await?;
        // The migrations inserted it.
        tx.execute("DELETE FROM config_version").await?;
        Ok(tx.commit().await?)
    }

    /// Removes the copied rows. Only for a database that carries the mark.
    pub async fn start_over(&mut self, figures: &DatabaseFigures) -> Result<(), TransferError> {
        let mut tx = self.store.write().await?;
        tx.execute(LOCK).await?;
        let sql = format!(
            "UPDATE move_state SET digest = $1, table_name = '{}', copied = 0, place = NULL",
            TABLES[0]
        );
        let digest = figures.digest();
        sqlx::query(AssertSqlSafe(sql)).bind(digest).execute(&mut *tx).await?;
        sqlx::raw_sql(AssertSqlSafe(format!("TRUNCATE {}", TABLES.join(", "))))
            .execute(&mut *tx)
            .await?;
        Ok(tx.commit().await?)
    }

    /// The target's figures. Reads the whole database.
    ///
    /// # Errors
    /// The tables differ; [`StoreError`] of the read.
    pub async fn figures(
        &mut self,
        source: &TransferSource,
    ) -> Result<DatabaseFigures, TransferError> {
        self.fit(source).await?;
        let mut tx = self.store.read().await?;
        let figures = DatabaseFigures::of(&mut tx, &self.tables).await?;
        tx.commit().await?;
        Ok(figures)
    }

    /// Fits the source's tables to those of the target.
    pub(super) async fn fit(&mut self, source: &TransferSource) -> Result<(), TransferError> {
        self.store.check_schema_beneath_move().await?;
        let mut tables = source.tables.clone();
        tables::fit_target(&mut tables, &mut *self.store.reader().await?).await?;
        self.tables = tables;
        Ok(())
    }

    /// New rows get numbers above the highest; the mark is removed. From then on gateways start.
    pub async fn finish(&mut self, source: &TransferSource) -> Result<(), TransferError> {
        let mut tx = self.store.write().await?;
        tx.execute(LOCK).await?;
        for table in source.tables.iter().filter(|table| table.has_id()) {
            let Some(highest) = source.highest_id(table).await?.filter(|highest| *highest > 0)
            else {
                continue;
            };
            let sql = format!(
                "SELECT CAST(setval(pg_get_serial_sequence('{}', 'id'), $1) AS TEXT)",
                table.name
            );
            sqlx::query(AssertSqlSafe(sql)).bind(highest).execute(&mut *tx).await?;
        }
        tx.execute(AssertSqlSafe(format!("DROP TABLE {}", state::NAME))).await?;
        schema::unmark_move(&mut tx).await?;
        tx.commit().await?;
        // Without it the first queries are planned as if the tables were empty.
        for table in TABLES {
            self.connection.execute(AssertSqlSafe(format!("ANALYZE {table}"))).await?;
        }
        Ok(())
    }

    /// Closes the connections.
    pub async fn close(self) {
        let _closed = self.connection.close().await;
        self.store.close().await;
    }
}

async fn standing(
    connection: &mut AnyConnection,
    source: &TransferSource,
    figures: Option<&DatabaseFigures>,
) -> Result<TargetStanding, TransferError> {
    let (marked, schema) = schema::beneath_move(connection, Backend::Postgres).await?;
    match (marked, schema) {
        (false, Ok(()) | Err(SchemaError::Behind { .. })) => {}
        (true, Ok(())) => {
            let state = state::read(connection).await?;
            return Ok(match state.source == source.identity {
                true => TargetStanding::Begun {
                    changed: figures.is_some_and(|now| now.digest() != state.digest),
                },
                false => TargetStanding::BegunByOther { path: state.path },
            });
        }
        (_, Err(error)) => return Err(error.into()),
    }
    let there = tables::names(connection, Backend::Postgres).await?;
    let mut filled = Vec::new();
    for table in TABLES.into_iter().filter(|name| there.iter().any(|there| there == name)) {
        let rows = match table {
            // The migrations inserted one row; it counts the changes.
            "config_version" => {
                first(connection, "SELECT COUNT(*) FROM config_version WHERE version <> 0").await?
            }
            _ => tables::rows_of(connection, table).await?,
        };
        if rows > 0 {
            filled.push(Filled { table, rows });
        }
    }
    Ok(if filled.is_empty() { TargetStanding::Empty } else { TargetStanding::Filled(filled) })
}

async fn first(connection: &mut AnyConnection, sql: &str) -> Result<i64, StoreError> {
    Ok(sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_one(connection).await?.try_get(0)?)
}
