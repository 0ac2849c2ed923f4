//! Requests and cost over time, by user, key, model or provider.
//!
//! Days come from the sums of days if these have the needed grouping. Other whole hours come from
//! the sums per hour: those by user if they suffice, else the hourly sums. An hour that a boundary
//! cuts (in zones that are not whole hours from UTC; minutes) comes from the ledger's rows. The
//! database adds up: a month of all users is hundreds of thousands of hourly sums.

use std::collections::BTreeMap;

use sqlx::{Any, AnyConnection, AssertSqlSafe, Transaction};

use super::pieces::{PieceSource, RangePiece, pieces};
use crate::domain::clock::Timestamp;
use crate::domain::ids::UserId;
use crate::domain::money::NanoUsd;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::ledger::days;
use crate::store::ledger::days::{Cut, DayQuery, SummedDay};
use crate::store::replica::report;

/// What each line represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum GroupBy {
    /// A line for each user, and one for the admin token's traffic.
    #[default]
    User,
    /// A line for each key, and one for the admin token's traffic.
    Key,
    /// A line for each model that clients asked for.
    Model,
    /// A line for each provider, and one for requests that reached none.
    Provider,
}

/// The query.
#[derive(Debug, Clone)]
pub struct SeriesAsk {
    /// The only user who counts; `None` = all, and the admin token's traffic.
    pub scope: Option<UserId>,
    /// The grouping: one line for each user, key, model or provider with any use.
    pub by: GroupBy,
    /// The start of each interval, and the end of the last.
    pub boundaries: Vec<Timestamp>,
}

/// One line: requests and cost of each interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// 0 = no user, key or provider; for a model always 0.
    pub id: i64,
    /// The model, or the present name of the record with this id; `None` if there is none.
    pub name: Option<String>,
    /// Requests of every outcome, and their cost in nano-USD: one point for each interval between
    /// two boundaries, in order.
    pub points: Vec<(u64, NanoUsd)>,
}

impl Series {
    /// The cost of all intervals together, in nano-USD.
    pub fn cost(&self) -> NanoUsd {
        self.points.iter().map(|(_, cost)| *cost).sum()
    }
}

/// The lines so far, by id and model.
type Lines = BTreeMap<(i64, String), Vec<(u64, NanoUsd)>>;

impl GroupBy {
    /// The column, and the table of its names.
    const fn column(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::User => ("user_id", Some("users")),
            Self::Key => ("key_id", Some("api_keys")),
            Self::Provider => ("provider_id", Some("providers")),
            Self::Model => ("model", None),
        }
    }

    /// The columns that distinguish the lines.
    fn selected(self) -> String {
        match self {
            Self::Model => "CAST(0 AS BIGINT) AS id, model AS line".to_owned(),
            _ => format!("COALESCE({}, 0) AS id, '' AS line", self.column().0),
        }
    }
}

impl Store {
    /// The lines with any use in these intervals, most expensive first.
    pub async fn series(&self, ask: &SeriesAsk) -> Result<Vec<Series>, StoreError> {
        report!(self, |tx| series(tx, ask))
    }
}

async fn series(
    mut tx: Transaction<'static, Any>,
    ask: &SeriesAsk,
) -> Result<Vec<Series>, StoreError> {
    let mut lines = Lines::new();
    let days = match (ask.cut(), ask.boundaries.first(), ask.boundaries.last()) {
        (Some(_), Some(first), Some(last)) => days::summed(&mut tx, *first, *last).await?,
        _ => Vec::new(),
    };
    for some in arms(&ask.boundaries, &days).chunks(ARMS) {
        add(&mut tx, ask, some, &mut lines).await?;
    }
    let names = names(&mut tx, ask.by, &lines).await?;
    tx.commit().await?;
    let named = lines.into_iter().map(|((id, line), points)| {
        let name = if ask.by == GroupBy::Model { Some(line) } else { names.get(&id).cloned() };
        Series { id, name, points }
    });
    let mut series: Vec<Series> = named.collect();
    series.sort_by_key(|line| (std::cmp::Reverse(line.cost()), line.id));
    Ok(series)
}

/// A part of one interval, and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct Arm {
    /// Of the stretch.
    place: usize,
    piece: RangePiece,
}

/// For each interval its summed days, the whole hours of the rest, and the remainder.
pub(in crate::store) fn arms(boundaries: &[Timestamp], days: &[SummedDay]) -> Vec<Arm> {
    let stretches = boundaries.windows(2).enumerate();
    let arms = stretches.flat_map(|(place, pair)| {
        pieces(pair[0].0, pair[1].0, days).into_iter().map(move |piece| Arm { place, piece })
    });
    arms.collect()
}

/// Arms in one statement.
const ARMS: usize = 64;

impl SeriesAsk {
    /// The grouping of summed days that can answer; `None`: none can.
    fn cut(&self) -> Option<Cut> {
        Cut::of(DayQuery {
            holder: self.scope.is_some() || matches!(self.by, GroupBy::User | GroupBy::Key),
            provider: self.by == GroupBy::Provider,
            model: self.by == GroupBy::Model,
            endpoint: false,
        })
    }

    /// The query of one arm, its values added; or of several consecutive ones of the ledger's rows.
    pub(in crate::store) fn select(&self, run: &[Arm], values: &mut Values) -> String {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return String::new() };
        let Arm { place, piece } = *first;
        values.int(piece.from).int(last.piece.until);
        let (from, until) = (values.count() - 1, values.count());
        let user = self.scope.map(|user| {
            values.int(user.0);
            values.count()
        });
        let of_user = user.map_or(String::new(), |n| format!(" AND user_id = ${n}"));
        let (column, selected) = (self.by.column().0, self.by.selected());
        let sums = "CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(cost) AS BIGINT) AS cost";
        match (piece.source, self.cut()) {
            (PieceSource::Days, Some(cut)) => {
                let cut = cut.number();
                format!(
                    "SELECT CAST({place} AS BIGINT) AS place, {selected}, {sums} FROM daily_sums \
                     WHERE cut = {cut} AND day >= ${from} AND day < ${until}{of_user} \
                     GROUP BY {column}"
                )
            }
            (PieceSource::Rows, _) => {
                let of_user = user.map_or(String::new(), |n| {
                    format!(" AND key_id IN (SELECT id FROM api_keys WHERE user_id = ${n})")
                });
                let place = place_of(run, values);
                format!(
                    "SELECT CAST({place} AS BIGINT) AS place, {selected}, CAST(COUNT(*) AS BIGINT) \
                     AS requests, COALESCE(CAST(SUM(cost) AS BIGINT), 0) AS cost FROM \
                     (SELECT * FROM ledger WHERE started_at >= ${from} \
                     AND started_at < ${until}{of_user}) AS counted GROUP BY 1, {column}"
                )
            }
            (PieceSource::Hours | PieceSource::Days, _) => {
                let table = if self.by == GroupBy::User && user.is_none() {
                    "hourly_users"
                } else {
                    "hourly_sums"
                };
                format!(
                    "SELECT CAST({place} AS BIGINT) AS place, {selected}, {sums} FROM {table} \
                     WHERE hour >= ${from} AND hour < ${until}{of_user} GROUP BY {column}"
                )
            }
        }
    }
}

/// The interval of a row of consecutive arms.
fn place_of(run: &[Arm], values: &mut Values) -> String {
    let Some((last, others)) = run.split_last() else { return "0".to_owned() };
    if others.is_empty() {
        return last.place.to_string();
    }
    let mut text = "CASE".to_owned();
    for arm in others {
        values.int(arm.piece.until);
        text.push_str(&format!(" WHEN started_at < ${} THEN {}", values.count(), arm.place));
    }
    text + &format!(" ELSE {} END", last.place)
}

/// Arms of the ledger's rows that follow each other, together; each other arm alone. The ledger has
/// many partitions: to read it once is cheaper than to plan a query for each minute of an hour.
pub(in crate::store) fn runs(arms: &[Arm]) -> impl Iterator<Item = &[Arm]> {
    arms.chunk_by(|left, right| {
        let rows =
            left.piece.source == PieceSource::Rows && right.piece.source == PieceSource::Rows;
        rows && left.piece.until == right.piece.from
    })
}

/// Adds the result of one statement: a separate query for each run, so that each uses an index.
async fn add(
    connection: &mut AnyConnection,
    ask: &SeriesAsk,
    arms: &[Arm],
    lines: &mut Lines,
) -> Result<(), StoreError> {
    let mut values = Values::default();
    let selects: Vec<String> = runs(arms).map(|run| ask.select(run, &mut values)).collect();
    let sql = AssertSqlSafe(selects.join(" UNION ALL "));
    for row in &sqlx::query_with(sql, values.into_arguments()).fetch_all(connection).await? {
        let fields = Fields { row, table: "hourly_sums" };
        let stretches = ask.boundaries.len().saturating_sub(1);
        let line = (fields.int("id")?, fields.text("line")?);
        let points = lines.entry(line).or_insert_with(|| vec![Default::default(); stretches]);
        if let Some((requests, cost)) = points.get_mut(fields.number::<usize>("place")?) {
            *requests += fields.number::<u64>("requests")?;
            *cost += NanoUsd(fields.int("cost")?);
        }
    }
    Ok(())
}

/// The present names of the ids, including deleted ones.
async fn names(
    connection: &mut AnyConnection,
    by: GroupBy,
    lines: &Lines,
) -> Result<BTreeMap<i64, String>, StoreError> {
    let mut names = BTreeMap::new();
    let Some(table) = by.column().1 else { return Ok(names) };
    let ids: Vec<i64> = lines.keys().map(|(id, _)| *id).collect();
    for chunk in ids.chunks(500) {
        let mut values = Values::default();
        let mut list = String::new();
        for id in chunk {
            values.int(*id);
            list.push_str(if list.is_empty() { "$" } else { ", $" });
            list.push_str(&values.count().to_string());
        }
        let sql = AssertSqlSafe(format!("SELECT id, name FROM {table} WHERE id IN ({list})"));
        for row in
            &sqlx::query_with(sql, values.into_arguments()).fetch_all(&mut *connection).await?
        {
            let fields = Fields { row, table };
            names.insert(fields.int("id")?, fields.text("name")?);
        }
    }
    Ok(names)
}
