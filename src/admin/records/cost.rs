//! One request with the sum that its cost is.

use schemars::JsonSchema;
use serde::Serialize;

use super::Exact;
use super::log::LogEntry;
use crate::domain::price::Rates;
use crate::domain::record::Record;
use crate::policy::cost::{self, CostLine};

/// A request and how its cost comes about, at the prices in force now.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogDetail {
    pub entry: LogEntry,
    /// One line for each kind of use that is charged for; empty where the model has no price now.
    pub cost_lines: Vec<CostLineRecord>,
    /// What the lines come to with the multiplier, in USD; `null` where the model has no price now. It differs from the
    /// entry's `costUsd` when the price has changed since, or when nothing was charged (a refused request, a token count).
    pub cost_at_present_prices: Option<Exact>,
}

/// `quantity` × `rateUsd` = `amountUsd`, before the multiplier.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostLineRecord {
    /// `input`, `image_input`, `cache_write_5m`, `cache_write_1h`, `cache_read`, `output`, `image_output` or `request`.
    pub kind: &'static str,
    /// Tokens, or 1 for the fee per request.
    pub quantity: u64,
    pub rate_usd: Exact,
    pub amount_usd: Exact,
}

impl LogDetail {
    pub fn new(record: &Record, rates: Option<&Rates>) -> Self {
        let priced = rates.map(|rates| cost::price(rates, &record.usage, record.cost_multiplier));
        Self {
            entry: LogEntry::new(record),
            cost_at_present_prices: priced.as_ref().map(|priced| Exact::usd(priced.total)),
            cost_lines: priced.iter().flat_map(|priced| &priced.lines).map(CostLineRecord::from).collect(),
        }
    }
}

impl From<&CostLine> for CostLineRecord {
    fn from(line: &CostLine) -> Self {
        let CostLine { kind, tokens, rate, amount } = *line;
        Self { kind: kind.as_str(), quantity: tokens, rate_usd: Exact(rate), amount_usd: Exact(amount) }
    }
}
