//! Requests and cost over time, as shown.

use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Exact, Iso};
use crate::domain::clock::Timestamp;
use crate::store::Series;

/// A chart: lines, and one point per interval. Each line has two values in every point, 0 if none.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatisticsRecord {
    /// One point per interval, in order. None is left out.
    pub chart_data: Vec<ChartPoint>,
    /// The lines, most expensive first, at most 500; lines without a request are left out.
    pub users: Vec<LineRecord>,
    /// As asked.
    pub time_range: &'static str,
    /// What a point stands for: `minute`, `hour` or `day`. Days are those of the gateway's time
    /// zone.
    pub resolution: &'static str,
    /// What the lines are of: `users`, `keys`, `models` or `providers`.
    pub mode: &'static str,
}

/// One line.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineRecord {
    /// Id of the user, key or provider; 0 = requests with the admin token, or requests that reached
    /// no provider. For a model, its place in this list.
    pub id: i64,
    /// The user's, key's, model's or provider's name; its id where the name is not known.
    pub name: String,
    /// The line's values are `<dataKey>_cost` (USD) and `<dataKey>_calls`.
    pub data_key: String,
}

/// `date`, and two values for each line: `user-7_cost`, `user-7_calls`.
#[derive(Debug)]
pub struct ChartPoint {
    date: Iso,
    names: Arc<[(String, String)]>,
    values: Vec<(u64, Exact)>,
}

impl Serialize for ChartPoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + 2 * self.values.len()))?;
        map.serialize_entry("date", &self.date)?;
        for ((cost_name, calls_name), (calls, cost)) in self.names.iter().zip(&self.values) {
            map.serialize_entry(cost_name, cost)?;
            map.serialize_entry(calls_name, calls)?;
        }
        map.end()
    }
}

impl JsonSchema for ChartPoint {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ChartPoint".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "When the stretch begins, and for each line what it cost \
                (`user-7_cost`, USD) and how many requests it had (`user-7_calls`).",
            "properties": { "date": { "type": "string", "format": "date-time" } },
            "required": ["date"],
            "additionalProperties": { "type": "number" },
        })
    }
}

/// The lines, and the points that begin at `dates`. `prefix` begins each line's data key.
pub fn chart(
    prefix: &str,
    dates: &[Timestamp],
    series: &[Series],
) -> (Vec<LineRecord>, Vec<ChartPoint>) {
    let of_models = prefix == "model";
    let line = |(place, series): (i64, &Series)| {
        let id = if of_models { place } else { series.id };
        let name = series.name.clone().unwrap_or_else(|| match (prefix, id) {
            ("user" | "key", 0) => "admin token".to_owned(),
            ("provider", 0) => "none".to_owned(),
            _ => format!("{prefix} {id}"),
        });
        LineRecord { id, name, data_key: format!("{prefix}-{id}") }
    };
    let lines: Vec<LineRecord> = (1..).zip(series).map(line).collect();
    let names: Arc<[(String, String)]> = lines
        .iter()
        .map(|line| (format!("{}_cost", line.data_key), format!("{}_calls", line.data_key)))
        .collect();
    let point = |(at, date): (usize, &Timestamp)| ChartPoint {
        date: Iso(*date),
        names: Arc::clone(&names),
        values: series
            .iter()
            .filter_map(|s| s.points.get(at))
            .map(|(n, cost)| (*n, Exact::usd(*cost)))
            .collect(),
    };
    let points = dates.iter().enumerate().map(point).collect();
    (lines, points)
}
