//! Requests and cost over time, by user, key, model or provider.
//!
//! Whole hours come from the sums per hour: those by user, where that tells enough, else the hourly sums. An hour that a
//! boundary cuts (in zones that are not whole hours from UTC; minutes) comes from the ledger's rows.

use std::collections::BTreeMap;

use sqlx::{AnyConnection, AssertSqlSafe};

use super::Store;
use super::column::{Fields, Values};
use super::error::StoreError;
use super::sums::{HOUR_MS, hour_of};
use crate::domain::clock::Timestamp;
use crate::domain::ids::UserId;
use crate::domain::money::NanoUsd;

/// What the lines are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    User,
    Key,
    Model,
    Provider,
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct SeriesAsk {
    /// The only user who counts; `None` = all, and the admin token's traffic.
    pub scope: Option<UserId>,
    pub by: GroupBy,
    /// Where each stretch of time begins, and at last where the last one ends.
    pub boundaries: Vec<Timestamp>,
}

/// One line: requests and cost of each stretch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// 0 = nobody's, or no provider; for a model always 0.
    pub id: i64,
    /// The model, or the present name of what the id stands for; `None` where there is none.
    pub name: Option<String>,
    pub points: Vec<(u64, NanoUsd)>,
}

impl Series {
    #[must_use]
    pub fn cost(&self) -> NanoUsd {
        self.points.iter().map(|(_, cost)| *cost).sum()
    }
}

/// The lines so far, by id and model.
type Lines = BTreeMap<(i64, String), Vec<(u64, NanoUsd)>>;

impl GroupBy {
    /// The column, and the table that its names are in.
    const fn column(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::User => ("user_id", Some("users")),
            Self::Key => ("key_id", Some("api_keys")),
            Self::Provider => ("provider_id", Some("providers")),
            Self::Model => ("model", None),
        }
    }

    /// What a statement selects to tell the lines apart.
    fn selected(self) -> String {
        match self {
            Self::Model => "CAST(0 AS BIGINT) AS id, model AS line".to_owned(),
            _ => format!("COALESCE({}, 0) AS id, '' AS line", self.column().0),
        }
    }
}

impl Store {
    /// The lines that have anything in these stretches, dearest first.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub async fn series(&self, ask: &SeriesAsk) -> Result<Vec<Series>, StoreError> {
        let mut lines = Lines::new();
        let mut tx = self.read().await?;
        for part in parts(&ask.boundaries) {
            add_part(&mut tx, ask, part, &mut lines).await?;
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
}

/// A stretch of time that one statement answers for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Whole hours.
    Hours { from: i64, until: i64 },
    /// The ledger's rows, minute by minute.
    Rows { from: i64, until: i64 },
}

/// Runs of whole hours, and the hours that a boundary cuts.
fn parts(boundaries: &[Timestamp]) -> Vec<Part> {
    let (Some(first), Some(last)) = (boundaries.first(), boundaries.last()) else { return Vec::new() };
    let cut = |at: &&Timestamp| at.0.rem_euclid(HOUR_MS) != 0;
    let mut hours: Vec<i64> = boundaries.iter().filter(cut).map(|at| hour_of(at.0)).collect();
    hours.dedup();
    let mut parts = Vec::new();
    let mut from = first.0;
    for hour in hours {
        if from < hour {
            parts.push(Part::Hours { from, until: hour });
        }
        let (begin, end) = (from.max(hour), last.0.min(hour + HOUR_MS));
        if begin < end {
            parts.push(Part::Rows { from: begin, until: end });
        }
        from = from.max(end);
    }
    if from < last.0 {
        parts.push(Part::Hours { from, until: last.0 });
    }
    parts
}

async fn add_part(
    connection: &mut AnyConnection,
    ask: &SeriesAsk,
    part: Part,
    lines: &mut Lines,
) -> Result<(), StoreError> {
    let mut values = Values::default();
    let selected = ask.by.selected();
    let scope = ask.scope.map(|user| user.0);
    let sql = match part {
        Part::Hours { from, until } => {
            values.int(from).int(until);
            let by_user = ask.by == GroupBy::User && scope.is_none();
            let table = if by_user { "hourly_users" } else { "hourly_sums" };
            let of_user = scope.map_or("", |_| " AND user_id = $3");
            format!(
                "SELECT hour AS at, {selected}, CAST(SUM(requests) AS BIGINT) AS requests, \
                 CAST(SUM(cost) AS BIGINT) AS cost FROM {table} WHERE hour >= $1 AND hour < $2{of_user} \
                 GROUP BY hour, {}",
                ask.by.column().0
            )
        }
        Part::Rows { from, until } => {
            values.int(from).int(until);
            let of_user = scope.map_or("", |_| " AND key_id IN (SELECT id FROM api_keys WHERE user_id = $3)");
            format!(
                "SELECT started_at / 60000 * 60000 AS at, {selected}, COUNT(*) AS requests, \
                 COALESCE(CAST(SUM(cost) AS BIGINT), 0) AS cost FROM ledger \
                 WHERE started_at >= $1 AND started_at < $2{of_user} GROUP BY started_at / 60000, {}",
                ask.by.column().0
            )
        }
    };
    if let Some(user) = scope {
        values.int(user);
    }
    for row in &sqlx::query_with(AssertSqlSafe(sql), values.into_arguments()).fetch_all(connection).await? {
        let fields = Fields { row, table: "hourly_sums" };
        let at = fields.time("at")?;
        let place = ask.boundaries.partition_point(|boundary| *boundary <= at);
        let stretches = ask.boundaries.len().saturating_sub(1);
        let line = lines
            .entry((fields.int("id")?, fields.text("line")?))
            .or_insert_with(|| vec![Default::default(); stretches]);
        if let Some((requests, cost)) = place.checked_sub(1).and_then(|place| line.get_mut(place)) {
            *requests += fields.number::<u64>("requests")?;
            *cost += NanoUsd(fields.int("cost")?);
        }
    }
    Ok(())
}

/// The present names of the ids; of deleted ones too.
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
        for row in &sqlx::query_with(sql, values.into_arguments()).fetch_all(&mut *connection).await? {
            let fields = Fields { row, table };
            names.insert(fields.int("id")?, fields.text("name")?);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_that_a_boundary_cuts_are_read_row_by_row() {
        let at = |halves: i64| Timestamp(halves * HOUR_MS / 2);
        let hours = |from: i64, until: i64| Part::Hours { from: from * HOUR_MS, until: until * HOUR_MS };
        let rows = |from: i64, until: i64| Part::Rows { from: from * HOUR_MS / 2, until: until * HOUR_MS / 2 };
        assert_eq!(parts(&[at(0), at(48), at(96)]), [hours(0, 48)]);
        let half = [rows(1, 2), hours(1, 24), rows(48, 50), hours(25, 48), rows(96, 97)];
        assert_eq!(parts(&[at(1), at(49), at(97)]), half);
        assert_eq!(parts(&[at(1), at(2)]), [rows(1, 2)]);
        assert_eq!(parts(&[]), []);
    }
}
