//! The ledger compared with what clients and providers counted.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::{Connection as _, Row as _};

use super::cluster::multiplier;
use super::faults::{Fault, Outage};
use super::load::{Asked, End};
use super::upstream::Visit;

/// After a reply a killed node may still lose the record of a refusal, which is written after it.
const AFTER: Duration = Duration::from_secs(1);
/// Nano-dollars of a hundred output tokens.
const OUTPUT: i64 = 10_000_000;

/// A record.
#[derive(Debug)]
pub struct Row {
    pub id: String,
    pub key: i64,
    pub provider: Option<i64>,
    pub status: i64,
    pub outcome: String,
    pub input: i64,
    pub output: i64,
    /// Nano-dollars; `None` without a price.
    pub cost: Option<i64>,
    pub estimated: bool,
}

/// What a request of this number costs at a provider, in nano-dollars.
pub fn cost(number: u64, provider: &str) -> i64 {
    (i64::try_from(number).unwrap() + OUTPUT) * multiplier(provider)
}

/// Every record, and the figures that other tables have for the same requests: (rows of the usage
/// log, requests and cost of the hourly sums).
pub async fn read(database: &str) -> (Vec<Row>, [i64; 3]) {
    sqlx::any::install_default_drivers();
    let mut connection = sqlx::AnyConnection::connect(database).await.unwrap();
    let rows = "SELECT request_id, key_id, provider_id, status_code, outcome, input_tokens, \
        output_tokens, cost, CAST(estimated AS BIGINT) AS estimated FROM ledger";
    let rows = sqlx::query(rows).fetch_all(&mut connection).await.unwrap();
    let row = |row: &sqlx::any::AnyRow| Row {
        id: uuid::Uuid::from_slice(&row.get::<Vec<u8>, _>("request_id")).unwrap().to_string(),
        key: row.get::<Option<i64>, _>("key_id").unwrap_or_default(),
        provider: row.get("provider_id"),
        status: row.get("status_code"),
        outcome: row.get("outcome"),
        input: row.get("input_tokens"),
        output: row.get("output_tokens"),
        cost: row.get("cost"),
        estimated: row.get::<i64, _>("estimated") != 0,
    };
    let sums = "SELECT (SELECT COUNT(*) FROM request_log) AS log, \
        CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(cost) AS BIGINT) AS cost \
        FROM hourly_sums";
    let sums = sqlx::query(sums).fetch_one(&mut connection).await.unwrap();
    let sums = [sums.get("log"), sums.get("requests"), sums.get("cost")];
    (rows.iter().map(row).collect(), sums)
}

/// What the run was.
pub struct Seen<'a> {
    /// By number.
    pub asked: &'a [Asked],
    pub visits: &'a [Visit],
    pub outages: &'a [Outage],
    /// Provider ids by name.
    pub providers: &'a HashMap<&'static str, i64>,
}

impl Seen<'_> {
    /// Whether the node was killed at such a time.
    pub fn killed(&self, node: usize, from: Duration, to: Duration) -> bool {
        self.outages.iter().any(|outage| {
            matches!(outage.fault, Fault::KillNode(_))
                && outage.node == node
                && outage.meets(from, to)
        })
    }

    /// Whether the node's disk was full at such a time.
    pub fn full(&self, node: usize, from: Duration, to: Duration) -> bool {
        self.outages.iter().any(|outage| {
            matches!(outage.fault, Fault::FullDisk(_))
                && outage.node == node
                && outage.meets(from, to)
        })
    }
}

/// The ledger's violations, and how many replies of providers a killed node lost.
pub fn check(seen: &Seen<'_>, rows: &[Row], sums: [i64; 3]) -> (Vec<String>, usize) {
    let mut wrong = Vec::new();
    let by_id: HashMap<&str, &Row> = rows.iter().map(|row| (row.id.as_str(), row)).collect();
    let mut by_number: HashMap<i64, Vec<&Row>> = HashMap::new();
    for row in rows.iter().filter(|row| row.outcome == "completed") {
        by_number.entry(row.input).or_default().push(row);
    }
    let mut answered: HashMap<u64, Vec<&Visit>> = HashMap::new();
    for visit in seen.visits.iter().filter(|visit| visit.whole) {
        answered.entry(visit.number).or_default().push(visit);
    }
    for asked in seen.asked {
        let completed = by_number.remove(&i64::try_from(asked.number).unwrap()).unwrap_or_default();
        let visits = answered.remove(&asked.number).unwrap_or_default();
        if let Some(why) = request(seen, asked, (&completed, &visits), &by_id) {
            wrong.push(format!("{why}: {asked:?}, records {completed:?}, answers {visits:?}"));
        }
    }
    wrong.extend(by_number.values().map(|rows| format!("records of no request: {rows:?}")));
    wrong.extend(answered.values().map(|visits| format!("answers to no request: {visits:?}")));
    others(seen, rows, &mut wrong);
    let total: i64 = rows.iter().filter_map(|row| row.cost).sum();
    let count = i64::try_from(rows.len()).unwrap();
    if sums != [count, count, total] {
        wrong.push(format!(
            "usage log, hourly requests and cost are {sums:?}, the ledger has {count} and {total}"
        ));
    }
    let recorded: HashSet<i64> =
        rows.iter().filter(|row| row.outcome == "completed").map(|row| row.input).collect();
    let is_lost =
        |visit: &&Visit| visit.whole && !recorded.contains(&i64::try_from(visit.number).unwrap());
    let lost = seen.visits.iter().filter(is_lost).count();
    (wrong, lost)
}

/// What is wrong with the records of one request.
fn request(
    seen: &Seen<'_>,
    asked: &Asked,
    (completed, answered): (&[&Row], &[&Visit]),
    by_id: &HashMap<&str, &Row>,
) -> Option<&'static str> {
    let killed = seen.killed(asked.node, asked.began, asked.ended + AFTER);
    if answered.len() > 1 {
        return Some("two providers answered it");
    }
    if completed.len() > 1 {
        return Some("two records");
    }
    match (completed.first(), answered.first()) {
        (Some(row), Some(visit)) => {
            let right = row.output == 100
                && row.status == 200
                && !row.estimated
                && row.key == asked.key
                && row.provider == seen.providers.get(visit.provider).copied()
                && row.cost == Some(cost(asked.number, visit.provider))
                && asked.id.as_ref().is_none_or(|id| *id == row.id);
            if !right {
                return Some("a wrong record");
            }
        }
        (Some(_), None) => return Some("a record of an answer that no provider gave"),
        (None, Some(_)) if !killed => return Some("a provider answered, and there is no record"),
        (None, _) if asked.end == End::Whole => return Some("a complete reply without a record"),
        (None, _) => {}
    }
    if let End::Limited(_) = asked.end {
        let row = asked.id.as_ref().and_then(|id| by_id.get(id.as_str()));
        let full = seen.full(asked.node, asked.began, asked.ended + AFTER);
        match row {
            None if !killed && !full => return Some("a refusal without a record"),
            Some(row) if row.cost.unwrap_or(0) != 0 || row.status != 429 => {
                return Some("a refusal with a wrong record");
            }
            _ => {}
        }
    }
    None
}

/// Records without a complete reply: each belongs to a request that had none.
fn others(seen: &Seen<'_>, rows: &[Row], wrong: &mut Vec<String>) {
    let known: HashMap<&str, &Asked> =
        seen.asked.iter().filter_map(|a| Some((a.id.as_deref()?, a))).collect();
    let broken = seen.asked.iter().filter(|asked| asked.id.is_none()).count();
    let mut nameless = 0;
    for row in rows.iter().filter(|row| row.outcome != "completed") {
        match known.get(row.id.as_str()) {
            Some(asked) if asked.end == End::Whole => {
                wrong.push(format!("a complete reply with another outcome: {asked:?}, {row:?}"));
            }
            Some(_) => {}
            None => nameless += 1,
        }
    }
    if nameless > broken {
        wrong.push(format!("{nameless} records of requests of which {broken} are known"));
    }
}
