//! What cache misses cost: by cause, and the losses among them by user, key, client and hour.

use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Transaction};

use crate::domain::cache_miss::CacheMissCause;
use crate::domain::clock::Timestamp;
use crate::domain::ids::UserId;
use crate::domain::money::NanoUsd;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::ledger::sums::hour_of;
use crate::store::replica::report;

/// The most lines by user, key or client: those of the highest cost.
const MOST: usize = 100;

/// The query.
#[derive(Debug, Clone, Copy)]
pub struct MissAsk {
    /// The only user who counts; `None` = all, and the admin token's traffic.
    pub scope: Option<UserId>,
    /// From the hour that contains this time.
    pub from: Timestamp,
    /// Up to this time.
    pub until: Timestamp,
}

/// Requests that missed some of their input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissLine {
    /// The user or the key; 0 = none, or the line is of something else.
    pub id: i64,
    /// The present name of the user or key, the cause or the client; `None` = there is none.
    pub name: Option<String>,
    /// When the hour began; 0 if the line is of something else.
    pub hour: Timestamp,
    /// Requests.
    pub requests: u64,
    /// Tokens that were not read from a cache.
    pub tokens: u64,
    /// What reading them would have saved.
    pub cost: NanoUsd,
}

/// Cache misses of a time range, the highest cost first, hours in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CacheMisses {
    /// By cause.
    pub causes: Vec<MissLine>,
    /// The losses by user, and in the same way below.
    pub users: Vec<MissLine>,
    /// By key.
    pub keys: Vec<MissLine>,
    /// By client, named as in the database.
    pub clients: Vec<MissLine>,
    /// By hour.
    pub hours: Vec<MissLine>,
}

impl Store {
    /// The cache misses of a time range.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn cache_misses(&self, ask: MissAsk) -> Result<CacheMisses, StoreError> {
        report!(self, |tx| cache_misses(tx, ask))
    }
}

async fn cache_misses(
    mut tx: Transaction<'static, Any>,
    ask: MissAsk,
) -> Result<CacheMisses, StoreError> {
    let lost = CacheMissCause::ALL.iter().filter(|cause| cause.is_loss());
    let lost = lost.map(|cause| format!("'{}'", cause.as_str())).collect::<Vec<_>>().join(", ");
    let lost = format!(" AND cause IN ({lost})");
    let name = |table: &str, column: &str| {
        format!("(SELECT name FROM {table} WHERE {table}.id = hourly_cache_misses.{column})")
    };
    Ok(CacheMisses {
        causes: lines(&mut tx, ask, ["0", "cause"], "cause", "").await?,
        users: lines(&mut tx, ask, ["user_id", &name("users", "user_id")], "user_id", &lost)
            .await?,
        keys: lines(&mut tx, ask, ["key_id", &name("api_keys", "key_id")], "key_id", &lost).await?,
        clients: lines(&mut tx, ask, ["0", "NULLIF(client, '')"], "client", &lost).await?,
        hours: lines(&mut tx, ask, ["hour", "NULL"], "hour", &lost).await?,
    })
}

/// The sums by one column. `shown`: the id and the name of a line.
async fn lines(
    tx: &mut Transaction<'static, Any>,
    ask: MissAsk,
    [id, name]: [&str; 2],
    column: &str,
    and: &str,
) -> Result<Vec<MissLine>, StoreError> {
    let mut values = Values::default();
    values.int(hour_of(ask.from.0)).int(ask.until.0);
    let user = ask.scope.map_or(String::new(), |user| {
        values.int(user.0);
        " AND user_id = $3".to_owned()
    });
    let order = match column {
        "hour" => "hour".to_owned(),
        _ => format!("SUM(cost) DESC, {column} LIMIT {MOST}"),
    };
    let sql = AssertSqlSafe(format!(
        "SELECT CAST({id} AS BIGINT) AS id, CAST({name} AS TEXT) AS name, CAST(SUM(requests) AS \
         BIGINT) AS requests, CAST(SUM(tokens) AS BIGINT) AS tokens, CAST(SUM(cost) AS BIGINT) AS \
         cost FROM hourly_cache_misses WHERE hour >= $1 AND hour < $2{user}{and} \
         GROUP BY {column} ORDER BY {order}"
    ));
    let rows = sqlx::query_with(sql, values.into_arguments()).fetch_all(&mut **tx).await?;
    let read = |row: &AnyRow| {
        let fields = Fields { row, table: "hourly_cache_misses" };
        let id = fields.int("id")?;
        let is_hour = column == "hour";
        Ok(MissLine {
            id: if is_hour { 0 } else { id },
            name: fields.opt_text("name")?,
            hour: Timestamp(if is_hour { id } else { 0 }),
            requests: fields.number("requests")?,
            tokens: fields.number("tokens")?,
            cost: NanoUsd(fields.int("cost")?),
        })
    };
    rows.iter().map(read).collect()
}
