//! `model-prices/*`: the price table.
//!
//! An upload is taken entry by entry: a bad one fails alone and is named with its reason. Entries are kept whole, fields
//! that no rate is read from too.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::admin::call::{Call, Change};
use crate::admin::envelope::{Code, Refusal};
use crate::admin::fields::{Body, Field, Kind, Patch};
use crate::admin::records::price::{PriceFailure, PriceRecord, PriceUpload};
use crate::admin::table::{Operation, Permission};
use crate::domain::clock::Timestamp;
use crate::domain::price::{Price, PriceSource};
use crate::policy::cost::rates_from_json;

/// Bytes: the public list is some two million.
const MAX_TABLE: usize = 16 * 1024 * 1024;
const MAX_NAME: usize = 200;

pub const UPLOAD: &[Field] = &[
    Field::new(
        "jsonContent",
        Kind::text(2, MAX_TABLE),
        "A JSON object as text: model name → entry with `input_cost_per_token`, `output_cost_per_token` and the like, in USD.",
    )
    .required(),
    Field::new("overwriteManual", Kind::Boolean, "When false, entries that were uploaded before are kept as they are.")
        .or_true(),
];

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/model-prices/getModelPrices", Permission::Admin, Body::EMPTY, get_prices)
            .doc("The whole price table."),
        Operation::action("actions/model-prices/uploadPriceTable", Permission::Admin, Body::of(&[], UPLOAD), upload)
            .doc("Adds and updates prices; a bad entry fails alone and is named.")
            .max_body(2 * MAX_TABLE),
        Operation::action("actions/model-prices/hasPriceTable", Permission::Any, Body::EMPTY, has_prices)
            .doc("Whether there is any price."),
    ]
}

async fn get_prices(call: Call) -> Result<Vec<PriceRecord>, Refusal> {
    let snapshot = call.ctx.state.snapshot();
    let mut prices: Vec<_> = snapshot.prices.values().collect();
    prices.sort_by(|a, b| a.model.cmp(&b.model));
    Ok(prices.into_iter().map(|price| PriceRecord::new(price)).collect())
}

async fn has_prices(call: Call) -> Result<bool, Refusal> {
    Ok(!call.ctx.state.snapshot().prices.is_empty())
}

async fn upload(call: Call) -> Result<PriceUpload, Refusal> {
    let text = call.values.text("jsonContent").set().unwrap_or_default();
    let table: Map<String, Value> = serde_json::from_str(&text).map_err(|error| {
        let message = format!("jsonContent: must hold a JSON object of model names: {error}");
        Refusal::field(Code::INVALID_FORMAT, "jsonContent", message)
    })?;
    let overwrite = !matches!(call.values.boolean("overwriteManual"), Patch::Set(false));
    let mut tx = call.ctx.store.begin().await?;
    let known = tx.prices().await?.into_iter().map(|price| (price.model.clone(), price)).collect();
    let (report, prices) = sort(table, &known, overwrite, call.now);
    if prices.is_empty() {
        return Ok(report);
    }
    tx.upsert_prices(&prices).await?;
    let after = json!({ "added": report.added, "updated": report.updated, "failed": report.failed });
    let change = Change {
        action: "model-prices.uploadPriceTable",
        target: format!("{} prices", prices.len()),
        before: None,
        after: Some(after),
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    Ok(report)
}

/// What becomes of each entry, and the prices to be stored.
fn sort(
    table: Map<String, Value>,
    known: &HashMap<String, Price>,
    overwrite: bool,
    now: Timestamp,
) -> (PriceUpload, Vec<Price>) {
    let mut report = PriceUpload { total: table.len(), ..PriceUpload::default() };
    let mut prices = Vec::new();
    for (model, data) in table {
        let before = known.get(&model);
        match read(&model, data, now) {
            Err(reason) => {
                report.failed.push(model.clone());
                report.failures.push(PriceFailure { model_name: model, reason });
            }
            Ok(price) if before.is_some_and(|before| before.data == price.data) => report.unchanged.push(price.model),
            Ok(price) if !overwrite && before.is_some_and(|before| before.source == PriceSource::Manual) => {
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

fn read(model: &str, data: Value, now: Timestamp) -> Result<Price, String> {
    let length = model.chars().count();
    if model.trim().is_empty() || length > MAX_NAME || model.contains('\0') {
        return Err(format!("a model's name has 1 to {MAX_NAME} characters"));
    }
    let rates = rates_from_json(&data).map_err(|problem| problem.to_string())?;
    Ok(Price { model: model.to_owned(), source: PriceSource::Manual, data, rates, updated_at: now })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        }));
        let (report, prices) = sort(first.clone(), &HashMap::new(), true, Timestamp(1));
        assert_eq!((report.total, report.added.as_slice()), (5, ["good".to_owned()].as_slice()));
        assert_eq!(report.failed, ["negative", "none", "text", " "]);
        assert!(report.failures[0].reason.contains("input_cost_per_token"), "{:?}", report.failures);
        assert_eq!(prices[0].data["extra"]["deep"][0], 1, "unknown fields are kept");

        let known: HashMap<_, _> = prices.into_iter().map(|p| (p.model.clone(), p)).collect();
        let (report, prices) = sort(first, &known, true, Timestamp(2));
        assert_eq!((report.unchanged.len(), prices.len()), (1, 0));
        let dearer = table(json!({ "good": { "input_cost_per_token": 4e-6 } }));
        assert_eq!(sort(dearer.clone(), &known, true, Timestamp(2)).0.updated, ["good"]);
        assert_eq!(sort(dearer, &known, false, Timestamp(2)).0.unchanged, ["good"]);
    }
}
