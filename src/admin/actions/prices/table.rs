//! The result for each entry of a price table: accepted, unchanged, kept, or refused.
//!
//! Entries are stored completely, including fields that no rate is read from.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::admin::records::price::{PriceFailure, PriceUpload};
use crate::domain::clock::Timestamp;
use crate::domain::model_facts::{ModelFacts, WrongFacts};
use crate::domain::price::{Price, PriceSource};
use crate::policy::cost::{Belief, rates_from_json};
use crate::policy::price::PriceProblem;
use crate::store::Tx;

/// Bytes: the public list has about two million.
pub(super) const MAX_TABLE: usize = 16 * 1024 * 1024;
/// Characters of a model's name.
pub(super) const MAX_NAME: usize = 200;

/// The entry of the public list that documents the others.
const EXPLANATION: &str = "sample_spec";

/// How a table is applied.
#[derive(Debug, Clone, Copy)]
pub(in crate::admin) struct Taking {
    pub source: PriceSource,
    /// Whether manual entries are replaced.
    pub overwrite_manual: bool,
    /// Whether seeded entries are kept too.
    pub keep_seed: bool,
    pub belief: Belief,
    pub now: Timestamp,
}

/// A table from its text: model name → entry.
///
/// # Errors
/// 400 if it is not a JSON object; `field` is the invalid field.
pub(super) fn parse(text: &str, field: &str) -> Result<Map<String, Value>, ApiError> {
    serde_json::from_str(text).map_err(|error| {
        let refusal =
            ApiError::because(Code::INVALID_FORMAT, Reason::PriceTableNoObject).field(field);
        refusal.with("detail", error.to_string().into())
    })
}

impl Taking {
    /// Whether an entry stays as it is.
    fn keeps(&self, before: &Price) -> bool {
        match before.source {
            PriceSource::Manual => !self.overwrite_manual,
            PriceSource::Seed => self.keep_seed,
            PriceSource::Sync => false,
        }
    }
}

/// The stored prices by model.
pub(super) async fn known(tx: &mut Tx) -> Result<HashMap<String, Price>, ApiError> {
    Ok(tx.prices().await?.into_iter().map(|price| (price.model.clone(), price)).collect())
}

/// The result for each entry, and the prices to be stored.
pub(super) fn sort(
    mut table: Map<String, Value>,
    known: &HashMap<String, Price>,
    taking: Taking,
) -> (PriceUpload, Vec<Price>) {
    table.shift_remove(EXPLANATION);
    let mut report = PriceUpload { total: table.len(), ..PriceUpload::default() };
    let mut prices = Vec::new();
    for (model, data) in table {
        let before = known.get(&model);
        match read(&model, data, taking) {
            Err(fault) => {
                report.failed.push(model.clone());
                let reason = fault.words();
                report.failures.push(PriceFailure {
                    model_name: model,
                    reason,
                    code: fault.reason.as_str(),
                    params: fault.params,
                });
            }
            Ok(price) if before.is_some_and(|before| before.data.parse() == price.data.parse()) => {
                report.unchanged.push(price.model)
            }
            Ok(price) if before.is_some_and(|before| taking.keeps(before)) => {
                report.unchanged.push(price.model);
            }
            Ok(price) => {
                let list = if before.is_some() { &mut report.updated } else { &mut report.added };
                list.push(price.model.clone());
                prices.push(price);
            }
        }
    }
    (report, prices)
}

/// Why an entry is none.
#[derive(Debug)]
pub(in crate::admin) struct PriceFault {
    /// What is wrong.
    pub reason: Reason,
    /// The values that the reason speaks of.
    pub params: Map<String, Value>,
}

impl PriceFault {
    fn new(reason: Reason, params: &[(&str, &str)]) -> Self {
        let each = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
        Self { reason, params: each.collect() }
    }

    /// The fault in words for the administrator.
    pub(in crate::admin) fn words(&self) -> String {
        self.reason.filled(&self.params)
    }

    /// The refusal of the entry.
    pub(in crate::admin) fn refusal(self) -> ApiError {
        ApiError::because(Code::INVALID_FORMAT, self.reason).with_all(self.params)
    }
}

impl From<PriceProblem> for PriceFault {
    fn from(problem: PriceProblem) -> Self {
        match problem {
            PriceProblem::NotAnObject => Self::new(Reason::PriceNoObject, &[]),
            PriceProblem::NotANumber { field } => {
                Self::new(Reason::PriceNoNumber, &[("rate", &field)])
            }
            PriceProblem::Negative { field } => {
                Self::new(Reason::PriceNegative, &[("rate", &field)])
            }
            PriceProblem::TooLarge { field, max } => {
                let max = max.to_string();
                Self::new(Reason::PriceTooLarge, &[("rate", &field), ("max", &max)])
            }
            PriceProblem::NoRates => Self::new(Reason::PriceHasNoRate, &[]),
        }
    }
}

impl From<WrongFacts> for PriceFault {
    fn from(WrongFacts { field, problem }: WrongFacts) -> Self {
        Self::new(Reason::PriceFacts, &[("member", &field), ("detail", &problem)])
    }
}

/// One entry.
pub(in crate::admin) fn read(
    model: &str,
    data: Value,
    taking: Taking,
) -> Result<Price, PriceFault> {
    let model = model.trim();
    let length = model.chars().count();
    if model.is_empty() || length > MAX_NAME || model.contains('\0') {
        return Err(PriceFault::new(Reason::PriceName, &[("max", &MAX_NAME.to_string())]));
    }
    // What the public list may mean by such a member is not known.
    if taking.source == PriceSource::Manual {
        ModelFacts::of_entry(&data)?;
    }
    let rates = rates_from_json(&data, taking.belief)?;
    Ok(Price::new(model.to_owned(), taking.source, &data, rates, taking.now))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BY_HAND: Taking = Taking {
        source: PriceSource::Manual,
        overwrite_manual: true,
        keep_seed: false,
        belief: Belief::Usual,
        now: Timestamp(1),
    };
    const BY_SYNC: Taking =
        Taking { source: PriceSource::Sync, overwrite_manual: false, ..BY_HAND };

    fn table(json: Value) -> Map<String, Value> {
        json.as_object().cloned().unwrap()
    }

    #[test]
    fn a_bad_entry_fails_alone_and_is_named() {
        let first = table(json!({
            "good": { "mode": "chat", "input_cost_per_token": 3e-6, "extra": { "deep": [1] } },
            "negative": { "input_cost_per_token": -1 },
            "none": { "mode": "chat" },
            "text": "free",
            " ": { "input_cost_per_token": 1e-6 },
            "sample_spec": { "input_cost_per_token": 0.0, "mode": "one of: chat, embedding" },
        }));
        let (report, prices) = sort(first.clone(), &HashMap::new(), BY_HAND);
        assert_eq!((report.total, report.added.as_slice()), (5, ["good".to_owned()].as_slice()));
        assert_eq!(report.failed, ["negative", "none", "text", " "]);
        assert!(
            report.failures[0].reason.contains("input_cost_per_token"),
            "{:?}",
            report.failures
        );
        assert_eq!(prices[0].data.parse()["extra"]["deep"][0], 1, "unknown fields are kept");

        let known: HashMap<_, _> = prices.into_iter().map(|p| (p.model.clone(), p)).collect();
        let (report, prices) = sort(first, &known, BY_HAND);
        assert_eq!((report.unchanged.len(), prices.len()), (1, 0));
        let dearer = table(json!({ "good": { "input_cost_per_token": 4e-6 } }));
        assert_eq!(sort(dearer.clone(), &known, BY_HAND).0.updated, ["good"]);
        assert_eq!(sort(dearer.clone(), &known, BY_SYNC).0.unchanged, ["good"], "entered by hand");
        let seeded: HashMap<_, _> = known
            .into_iter()
            .map(|(model, price)| (model, Price { source: PriceSource::Seed, ..price }))
            .collect();
        assert_eq!(sort(dearer.clone(), &seeded, BY_SYNC).0.updated, ["good"]);
        let keeping = Taking { keep_seed: true, ..BY_SYNC };
        assert_eq!(sort(dearer, &seeded, keeping).0.unchanged, ["good"], "the operator's own");
    }

    #[test]
    fn a_price_beyond_belief_is_taken_when_it_is_forced() {
        let dear = table(
            json!({ "gold": { "input_cost_per_token": 7 }, "debt": { "input_cost_per_token": -7 } }),
        );
        assert_eq!(sort(dear.clone(), &HashMap::new(), BY_HAND).0.failed, ["gold", "debt"]);
        let (report, prices) =
            sort(dear, &HashMap::new(), Taking { belief: Belief::Forced, ..BY_HAND });
        assert_eq!((report.failed.as_slice(), prices.len()), (["debt".to_owned()].as_slice(), 1));
    }
}
