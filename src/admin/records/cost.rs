//! One request with the sum that its cost is.

use schemars::JsonSchema;
use serde::Serialize;

use super::Exact;
use super::log::{Audience, LogEntry};
use crate::domain::price::Price;
use crate::domain::record::Record;
use crate::policy::bill::{self, Line};
use crate::policy::cost::CostLine;
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
    /// `output`, `image_output`, `audio_output`, `reasoning`, `web_search`, `request`,
    /// `image_cache_read`, `audio_cache_read`, `code_interpreter`, `file_search`, `maps`, `image`,
    /// `second`, `character` or `query`.
    pub kind: &'static str,
    /// The price entry of the rate, where it is another one than the request's: that of another
    /// model, which took part in the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens, searches, calls of a tool, or 1 for the fee per request.
    pub quantity: u64,
    /// USD for one unit of `quantity`.
    pub rate_usd: Exact,
    /// USD, before the multiplier.
    pub amount_usd: Exact,
}

impl LogDetail {
    /// `price`: the entry that priced the request, or that would price it now; `find`: that of any
    /// other model.
    pub fn new<'a>(
        record: &Record,
        reader: Audience,
        price: Option<&'a Price>,
        find: impl Fn(&str) -> Option<&'a Price>,
    ) -> Self {
        let upstream = record.upstream_model.as_deref().unwrap_or(&record.model);
        let (asked, multiplier) = ([&*record.model, upstream], record.cost_multiplier);
        let reply = bill::PricedReply { own: price, asked, find, multiplier };
        let lines = reply.lines(&record.usage, &record.parts);
        // The endpoints of both formats that count tokens end so.
        let is_billed =
            !["count_tokens", "countTokens"].iter().any(|end| record.endpoint.ends_with(end));
        let above = lines.iter().map(|line| line.line.rate.above).max();
        Self {
            input_above: above.filter(|above| *above > 0),
            explanation: explain(record, price, is_billed),
            entry: LogEntry::new(record, reader),
            cost_at_present_prices: reply
                .charge(&record.usage, &mut record.parts.clone())
                .map(Exact::usd),
            cost_lines: lines
                .iter()
                .map(|line| CostLineRecord::new(line, price.map(|price| &*price.model)))
                .collect(),
        }
    }
}

impl CostLineRecord {
    /// `own`: the entry of the request.
    fn new(line: &Line<'_>, own: Option<&str>) -> Self {
        let CostLine { kind, quantity, rate, amount } = line.line;
        let other = Some(&*line.price.model).filter(|entry| Some(*entry) != own);
        Self {
            kind: kind.as_str(),
            model: other.map(str::to_owned),
            quantity,
            rate_usd: Exact(rate.usd),
            amount_usd: Exact(amount),
        }
    }
}
