//! Price table rows as shown, and what an upload did.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Exact, Iso};
use crate::domain::price::{CostKind, Price};
use crate::policy::price::{factors, unapplied};

/// One model's price.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriceRecord {
    /// The model that the price is for, as clients or providers call it; 1–200 characters.
    pub model_name: String,
    /// The entry as it was uploaded, unknown fields and all.
    pub price_data: Value,
    /// Fields of the entry that look like prices and that no request is charged by.
    pub unapplied: Vec<String>,
    /// USD for each web search, as it is charged; `null` = nothing.
    pub web_search_usd: Option<Exact>,
    /// The factor on the standard rates in the model's fast mode; `null` = none.
    pub fast_factor: Option<Exact>,
    /// The factor on the standard rates for inference in the United States only; `null` = none.
    pub us_factor: Option<Exact>,
    /// `manual`, `sync` or `seed`.
    pub source: &'static str,
    /// When the entry was last changed.
    pub updated_at: Iso,
}

impl PriceRecord {
    /// The entry as shown, with the fields of it that have no effect on costs.
    pub fn new(price: &Price) -> Self {
        let price_data = price.data.parse();
        let (fast, us) = factors(&price_data);
        Self {
            model_name: price.model.clone(),
            unapplied: unapplied(&price_data),
            web_search_usd: price.rates.base(CostKind::WebSearch).map(Exact),
            fast_factor: fast.map(Exact),
            us_factor: us.map(Exact),
            price_data,
            source: price.source.as_str(),
            updated_at: Iso(price.updated_at),
        }
    }
}

/// Models without a price.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnpricedRecord {
    /// Models of requests that have no cost, the most requests first; then the others that enabled
    /// providers list by name, in alphabetical order.
    pub models: Vec<UnpricedModelRecord>,
    /// Whether such requests pass the money limit of a user or a key, because `prices.unpriced` is
    /// `serve`.
    pub pass_limits: bool,
}

/// A model without a price.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnpricedModelRecord {
    /// The model, as clients call it.
    pub model_name: String,
    /// Requests for it that have no cost.
    pub requests: u64,
}

/// What became of each entry of a price table, by model name.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriceUpload {
    /// Models that had no entry before.
    pub added: Vec<String>,
    /// Models whose entry was replaced.
    pub updated: Vec<String>,
    /// Already so, or kept because they were entered by hand.
    pub unchanged: Vec<String>,
    /// Not taken; see `failures`.
    pub failed: Vec<String>,
    /// One item for each name in `failed`, in the same order.
    pub failures: Vec<PriceFailure>,
    /// Entries in the table.
    pub total: usize,
}

/// The daily sync of the price list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriceSyncRecord {
    /// `off` or `daily`. It is configuration (`prices.sync`), and cannot be saved here.
    pub mode: &'static str,
    /// Where the list is fetched.
    pub address: String,
    /// When the last daily sync began; `null` before the first one.
    pub last_at: Option<Iso>,
    /// Why the last one took nothing over, if it did not: the prices stayed as they were.
    pub error: Option<String>,
    /// Models that had no entry before.
    pub added: u64,
    /// Models whose entry changed.
    pub updated: u64,
    /// Entries that were not taken.
    pub failed: u64,
    /// Entries in the list.
    pub total: u64,
    /// The fields that changed: by model, as they were. At most 200 models.
    pub before: Map<String, Value>,
    /// By model, as they are now.
    pub after: Map<String, Value>,
}

/// A price entry that was not taken, and why.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriceFailure {
    /// The model's name in the table, as it was sent.
    pub model_name: String,
    /// What is wrong with the entry, in English.
    pub reason: String,
    /// Why, for programs: a reason as refusals name it.
    pub code: &'static str,
    /// The values that the reason speaks of.
    pub params: Map<String, Value>,
}
