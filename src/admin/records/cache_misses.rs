//! What cache misses cost, as shown.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Exact, Iso};
use crate::domain::clock::Timestamp;
use crate::domain::money::NanoUsd;
use crate::store::{CacheMisses, MissLine};

/// Input that providers did not read from their prompt caches.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheMissesRecord {
    /// USD that all requests of the time cost.
    pub total_cost_usd: Exact,
    /// The losses: all causes but `first_use` and `unknown`.
    #[serde(flatten)]
    pub lost: Missed,
    /// By cause, the highest cost first; here and below at most 100.
    pub causes: Vec<MissesOfCause>,
    /// Losses by user.
    pub users: Vec<MissesOfHolder>,
    /// Losses by key.
    pub keys: Vec<MissesOfHolder>,
    /// Losses by client.
    pub clients: Vec<MissesOfClient>,
    /// Losses by calendar day, each day of the time once. In time zones that are not whole hours
    /// from UTC, an hour counts to the day in which it begins.
    pub days: Vec<MissesOfDay>,
}

/// Requests that missed some of their input.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Missed {
    /// Requests.
    pub requests: u64,
    /// Tokens.
    pub tokens: u64,
    /// What reading them from the cache would have saved, in USD.
    pub cost_usd: Exact,
}

/// Requests of one cause.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissesOfCause {
    /// `account`, `model`, `tools`, `system`, `message`, `lifetime`, `unexplained`, `first_use` or
    /// `unknown`.
    pub cause: String,
    /// How much.
    #[serde(flatten)]
    pub missed: Missed,
}

/// Requests of one user or key.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissesOfHolder {
    /// The user or the key; 0 = traffic of the administrator token.
    pub id: i64,
    /// The present name.
    pub name: Option<String>,
    /// How much.
    #[serde(flatten)]
    pub missed: Missed,
}

/// Requests of one client.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissesOfClient {
    /// `claude-code`, `codex`, `gemini-cli`, `opencode` or `qwen-code`; `null` = any other.
    pub client: Option<String>,
    /// How much.
    #[serde(flatten)]
    pub missed: Missed,
}

/// Requests of one day.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissesOfDay {
    /// When the day began.
    pub date: Iso,
    /// How much.
    #[serde(flatten)]
    pub missed: Missed,
}

impl CacheMissesRecord {
    /// The record. `boundaries`: the start of each day, and the end of the last.
    pub fn new(misses: &CacheMisses, spent: NanoUsd, boundaries: &[Timestamp]) -> Self {
        let of_cause = |line: &MissLine| {
            let cause = line.name.clone().unwrap_or_default();
            MissesOfCause { cause, missed: Missed::of([line]) }
        };
        let of_holder = |line: &MissLine| MissesOfHolder {
            id: line.id,
            name: line.name.clone(),
            missed: Missed::of([line]),
        };
        let of_client = |line: &MissLine| MissesOfClient {
            client: line.name.clone(),
            missed: Missed::of([line]),
        };
        let of_day = |day: &[Timestamp]| {
            let hours = misses.hours.iter().filter(|line| {
                // The first hour of all may have begun before its day.
                line.hour.max(boundaries[0]) >= day[0] && line.hour < day[1]
            });
            MissesOfDay { date: Iso(day[0]), missed: Missed::of(hours) }
        };
        Self {
            total_cost_usd: Exact::usd(spent),
            lost: Missed::of(&misses.hours),
            causes: misses.causes.iter().map(of_cause).collect(),
            users: misses.users.iter().map(of_holder).collect(),
            keys: misses.keys.iter().map(of_holder).collect(),
            clients: misses.clients.iter().map(of_client).collect(),
            days: boundaries.windows(2).map(of_day).collect(),
        }
    }
}

impl Missed {
    fn of<'l>(lines: impl IntoIterator<Item = &'l MissLine>) -> Self {
        let (mut requests, mut tokens, mut cost) = (0, 0, NanoUsd::ZERO);
        for line in lines {
            requests += line.requests;
            tokens += line.tokens;
            cost = cost.saturating_add(line.cost);
        }
        Self { requests, tokens, cost_usd: Exact::usd(cost) }
    }
}
