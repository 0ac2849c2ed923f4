//! A peer's PostgreSQL or SQLite database, read in one read-only transaction.
//!
//! Every value is converted to text by the database. Only names of the [`PeerSchema`]'s constants
//! go into statements.

use std::collections::BTreeMap;
use std::path::Path;

use sqlx::{AnyConnection, AssertSqlSafe, ConnectOptions, Connection, Executor, Row};

use super::{
    Only, PeerData, PeerError, PeerRow, PeerSchema, PeerSpend, PeerSpendTable, PeerTable, Since,
    decimal,
};
use crate::domain::clock::Timestamp;
use crate::domain::secret::Secret;
use crate::store::Backend;

/// How long connecting may take.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(10);

pub(super) async fn postgres(
    address: &Secret,
    schema: &PeerSchema,
    since: Since<'_>,
) -> Result<PeerData, PeerError> {
    let mut connection = connect(address.expose()).await?;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    connection.execute(begin).await.map_err(unreachable)?;
    read(connection, Backend::Postgres, schema, since).await
}

pub(super) async fn sqlite(
    file: &Path,
    schema: &PeerSchema,
    since: Since<'_>,
) -> Result<PeerData, PeerError> {
    let path = file.canonicalize()?;
    let mut url = String::from("sqlite:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                url.push(char::from(*byte))
            }
            other => url.push_str(&format!("%{other:02X}")),
        }
    }
    let mut connection = connect(&format!("{url}?mode=ro")).await?;
    // The file is foreign: its views call no function of this program.
    let safe = "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF";
    connection.execute(safe).await.map_err(unreachable)?;
    connection.execute("BEGIN").await.map_err(unreachable)?;
    read(connection, Backend::Sqlite, schema, since).await
}

async fn connect(url: &str) -> Result<AnyConnection, PeerError> {
    sqlx::any::install_default_drivers();
    let options: sqlx::any::AnyConnectOptions = url.parse().map_err(unreachable)?;
    let options = options
        .log_statements(log::LevelFilter::Trace)
        .log_slow_statements(log::LevelFilter::Trace, super::super::engine::connect::SLOW);
    match tokio::time::timeout(CONNECT, AnyConnection::connect_with(&options)).await {
        Ok(connected) => connected.map_err(unreachable),
        Err(_) => Err(PeerError::Unreachable(format!("no answer within {} s", CONNECT.as_secs()))),
    }
}

fn unreachable(error: sqlx::Error) -> PeerError {
    PeerError::Unreachable(reported(&error))
}

/// The database's own words; an error about the address itself may quote it.
fn reported(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Configuration(_) => "its address is not valid".to_owned(),
        sqlx::Error::Database(report) => report.message().to_owned(),
        other => other.to_string(),
    }
}

/// The columns of a table, and the type of each.
type Columns = BTreeMap<String, String>;

async fn read(
    mut connection: AnyConnection,
    backend: Backend,
    schema: &PeerSchema,
    since: Since<'_>,
) -> Result<PeerData, PeerError> {
    let mut data = PeerData::default();
    for table in schema.tables {
        let columns = columns(&mut connection, backend, table.name).await?;
        if columns.is_empty() && table.may_lack {
            continue;
        }
        let rows = rows(&mut connection, backend, table, &columns).await?;
        data.tables.insert(table.name, rows);
    }
    for table in schema.spend {
        let columns = columns(&mut connection, backend, table.name).await?;
        if !columns.is_empty() {
            let since = since(&data.tables);
            data.spend = spend(&mut connection, backend, table, &columns, since).await?;
            data.spend_table = Some(table.name);
            break;
        }
    }
    // Nothing depends on a clean end.
    let _ = connection.close().await;
    Ok(data)
}

async fn columns(
    connection: &mut AnyConnection,
    backend: Backend,
    table: &'static str,
) -> Result<Columns, PeerError> {
    let sql = match backend {
        Backend::Postgres => {
            "SELECT CAST(column_name AS TEXT), CAST(data_type AS TEXT) \
             FROM information_schema.columns \
             WHERE table_schema = ANY(current_schemas(false)) AND table_name = $1"
        }
        Backend::Sqlite => {
            "SELECT CAST(name AS TEXT), CAST(type AS TEXT) FROM pragma_table_info($1)"
        }
    };
    let rows = sqlx::query(sql)
        .bind(table)
        .fetch_all(connection)
        .await
        .map_err(|error| not_readable(table, &error))?;
    let read = |row: &sqlx::any::AnyRow| Ok((row.try_get(0)?, row.try_get(1)?));
    rows.iter()
        .map(read)
        .collect::<Result<_, sqlx::Error>>()
        .map_err(|error| not_readable(table, &error))
}

fn not_readable(table: &'static str, error: &sqlx::Error) -> PeerError {
    PeerError::NotReadable { table, why: reported(error) }
}

fn require(
    table: &'static str,
    columns: &Columns,
    wanted: &[&'static str],
) -> Result<(), PeerError> {
    if columns.is_empty() {
        return Err(PeerError::NoTable(table));
    }
    match wanted.iter().find(|column| !columns.contains_key(**column)) {
        Some(column) => Err(PeerError::NoColumn { table, column }),
        None => Ok(()),
    }
}

/// A column as text.
fn as_text(column: &str, kind: &str) -> String {
    let kind = kind.to_ascii_lowercase();
    match kind.as_str() {
        "array" => format!("CAST(array_to_json(\"{column}\") AS TEXT)"),
        "double precision" | "real" => format!("CAST(CAST(\"{column}\" AS NUMERIC) AS TEXT)"),
        kind if kind.starts_with("timestamp") => {
            format!("CAST(EXTRACT(EPOCH FROM \"{column}\") AS TEXT)")
        }
        _ => format!("CAST(\"{column}\" AS TEXT)"),
    }
}

async fn rows(
    connection: &mut AnyConnection,
    backend: Backend,
    table: &PeerTable,
    columns: &Columns,
) -> Result<Vec<PeerRow>, PeerError> {
    require(table.name, columns, table.required)?;
    let wanted: Vec<(&'static str, &String)> = table
        .required
        .iter()
        .chain(table.optional)
        .filter_map(|column| Some((*column, columns.get(*column)?)))
        .collect();
    let kind =
        |kind: &str| if backend == Backend::Sqlite { String::new() } else { kind.to_owned() };
    let list: Vec<String> = wanted.iter().map(|(column, of)| as_text(column, &kind(of))).collect();
    let sql = format!("SELECT {} FROM \"{}\" ORDER BY 1", list.join(", "), table.name);
    let failed = |error: sqlx::Error| not_readable(table.name, &error);
    let found = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await.map_err(failed)?;
    let one = |row: &sqlx::any::AnyRow| {
        let value = |(at, (column, _)): (usize, &(&'static str, &String))| {
            let value: Result<Option<String>, sqlx::Error> = row.try_get(at);
            value.map(|value| value.map(|value| (*column, value))).transpose()
        };
        wanted.iter().enumerate().filter_map(value).collect::<Result<PeerRow, _>>()
    };
    found.iter().map(one).collect::<Result<_, _>>().map_err(failed)
}

async fn spend(
    connection: &mut AnyConnection,
    backend: Backend,
    table: &PeerSpendTable,
    columns: &Columns,
    since: Timestamp,
) -> Result<Vec<PeerSpend>, PeerError> {
    require(table.name, columns, &[table.at, table.amount])?;
    let holders: Vec<String> = table
        .holders
        .iter()
        .map(|column| match columns.contains_key(*column) {
            true => format!("CAST(\"{column}\" AS TEXT)"),
            false => "CAST(NULL AS TEXT)".to_owned(),
        })
        .collect();
    let seconds = match columns.get(table.at).is_some_and(|kind| kind.starts_with("timestamp")) {
        true => format!("EXTRACT(EPOCH FROM \"{}\")", table.at),
        false => format!("\"{}\"", table.at),
    };
    let (minute, amount) = match backend {
        Backend::Postgres => {
            ("FLOOR(seconds / 60.0)", format!("CAST(\"{}\" AS NUMERIC)", table.amount))
        }
        Backend::Sqlite => ("seconds / 60", format!("\"{}\"", table.amount)),
    };
    let names: Vec<String> = (0..holders.len()).map(|at| format!("holder_{at}")).collect();
    let named: Vec<String> =
        holders.iter().zip(&names).map(|(holder, name)| format!("{holder} AS {name}")).collect();
    let bucket =
        format!("CASE WHEN seconds >= {} THEN CAST({minute} AS BIGINT) END", since.0 / 1_000);
    let sql = format!(
        "SELECT {list}, CAST({bucket} AS TEXT) AS bucket, CAST(SUM(amount) AS TEXT) AS amount \
         FROM (SELECT {named}, {seconds} AS seconds, {amount} AS amount FROM \"{table}\" \
         WHERE {conditions}) AS spent GROUP BY {list}, {bucket}",
        list = names.join(", "),
        named = named.join(", "),
        table = table.name,
        conditions = conditions(table, columns),
    );
    let failed = |error: sqlx::Error| not_readable(table.name, &error);
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await.map_err(failed)?;
    let count = holders.len();
    rows.iter().map(|row| sum(row, count)).collect::<Result<_, _>>().map_err(failed)
}

fn sum(row: &sqlx::any::AnyRow, holders: usize) -> Result<PeerSpend, sqlx::Error> {
    let text = |at: usize| row.try_get::<Option<String>, _>(at);
    let minute = text(holders)?.and_then(|minute| minute.parse::<i64>().ok());
    Ok(PeerSpend {
        holders: (0..holders).map(text).collect::<Result<_, _>>()?,
        minute: minute.map(|minute| Timestamp(minute.saturating_mul(60_000))),
        amount: text(holders + 1)?.and_then(|amount| decimal(&amount)).unwrap_or_default(),
    })
}

fn conditions(table: &PeerSpendTable, columns: &Columns) -> String {
    let mut all = vec!["1 = 1".to_owned()];
    for condition in table.only {
        let (column, sql) = match condition {
            Only::Is(column, value) => (column, format!("CAST(\"{column}\" AS TEXT) = '{value}'")),
            Only::IsNot(column, value) => {
                (column, format!("COALESCE(CAST(\"{column}\" AS TEXT), '') <> '{value}'"))
            }
            Only::IsNull(column) => (column, format!("\"{column}\" IS NULL")),
        };
        if columns.contains_key(*column) {
            all.push(sql);
        }
    }
    all.join(" AND ")
}
