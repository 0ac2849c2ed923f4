//! One request with the sum that its cost is.

use schemars::JsonSchema;
use serde::Serialize;

use super::Exact;
use super::log::{LogEntry, Reader};
use crate::domain::price::Price;
use crate::domain::record::Record;
use crate::policy::cost::{self, CostLine};
use crate::policy::explain::explain;

/// A request and how its cost comes about, at the prices in effect now.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogDetail {
    /// The entry of the usage log, with the cost that was charged.
    pub entry: LogEntry,
    /// One line for each kind of use that is charged for; empty where the model has no price now.
    pub cost_lines: Vec<CostLineRecord>,
    /// What the lines come to with the multiplier, in USD; `null` where the model has no price now.
    /// It differs from the entry's `costUsd` when the price has changed since, or when nothing was
    /// charged (a refused request, a token count).
    pub cost_at_present_prices: Option<Exact>,
    /// Long-context rates hold for input above so many tokens; `null` where none of the rates is
    /// one.
    pub input_above: Option<u64>,
    /// Why it cost this, in one sentence: price entry, tier, tokens, multiplier, and whether the
    /// usage is an estimate.
    pub explanation: String,
}

/// `quantity` × `rateUsd` = `amountUsd`, before the multiplier.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostLineRecord {
    /// `input`, `image_input`, `audio_input`, `cache_write_5m`, `cache_write_1h`, `cache_read`,
    /// `output`, `image_output`, `audio_output`, `reasoning`, `web_search` or `request`.
    pub kind: &'static str,
    /// Tokens, web searches, or 1 for the fee per request.
    pub quantity: u64,
    /// USD for one unit of `quantity`.
    pub rate_usd: Exact,
    /// USD, before the multiplier.
    pub amount_usd: Exact,
}

impl LogDetail {
    /// `price`: the entry that priced the request, or that would price it now.
    pub fn new(record: &Record, reader: Reader, price: Option<&Price>) -> Self {
        let priced =
            price.map(|price| cost::price(&price.rates, &record.usage, record.cost_multiplier));
        let lines = priced.iter().flat_map(|priced| &priced.lines);
        // The endpoints of both formats that count tokens end so.
        let is_billed =
            !["count_tokens", "countTokens"].iter().any(|end| record.endpoint.ends_with(end));
        Self {
            input_above: lines.map(|line| line.rate.above).max().filter(|above| *above > 0),
            explanation: explain(record, price, is_billed),
            entry: LogEntry::new(record, reader),
            cost_at_present_prices: priced.as_ref().map(|priced| Exact::usd(priced.total)),
            cost_lines: priced
                .iter()
                .flat_map(|priced| &priced.lines)
                .map(CostLineRecord::from)
                .collect(),
        }
    }
}

impl From<&CostLine> for CostLineRecord {
    fn from(line: &CostLine) -> Self {
        let CostLine { kind, quantity, rate, amount } = *line;
        Self { kind: kind.as_str(), quantity, rate_usd: Exact(rate.usd), amount_usd: Exact(amount) }
    }
}
