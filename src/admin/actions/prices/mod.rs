//! `model-prices/*`: the price table.
//!
//! A table is applied entry by entry ([`table`]): an invalid one fails alone and is listed with its
//! reason. Every change of a price also starts the pricing of requests without one.

pub mod models;
pub(in crate::admin) mod table;

use std::collections::HashMap;

use serde_json::{Value, json};

use self::table::{MAX_NAME, MAX_TABLE, Taking};
use crate::admin::call::{Call, Change, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::fields::{Body, Field, Kind, Patch};
use crate::admin::records::price::{PriceRecord, PriceUpload};
use crate::admin::table::{Operation, Permission};
use crate::domain::price::{Price, PriceSource};
use crate::http_client::list;
use crate::policy::cost::Belief;
use crate::store::Tx;

/// Maximum bytes of one entry.
const MAX_ENTRY: usize = 64 * 1024;

const FORCE: Field =
    Field::new("force", Kind::Boolean, "Take prices too that nobody believes (above 1 USD per token).").or_false();

pub const UPLOAD: &[Field] = &[
    Field::new(
        "jsonContent",
        Kind::text(2, MAX_TABLE),
        "A JSON object as text: model name → entry with `input_cost_per_token`, `output_cost_per_token` and the like, in USD.",
    )
    .required(),
    Field::new("overwriteManual", Kind::Boolean, "When false, entries that were entered by hand before are kept as they are.")
        .or_true(),
    FORCE,
];

pub const MODEL: &[Field] =
    &[Field::new("modelName", Kind::text(1, MAX_NAME), "As clients, or providers, call the model.").required()];

pub const ENTRY: &[Field] = &[
    Field::new(
        "priceData",
        Kind::Document { max: MAX_ENTRY },
        "The entry: `input_cost_per_token`, `output_cost_per_token` and the like, in USD; unknown fields are kept.",
    )
    .required(),
    FORCE,
];

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/model-prices/getModelPrices", Permission::Admin, Body::EMPTY, get_prices)
            .doc("The whole price table."),
        Operation::action("actions/model-prices/uploadPriceTable", Permission::Admin, Body::of(&[], UPLOAD), upload)
            .doc("Adds and updates prices; a bad entry fails alone and is named.")
            .max_body(2 * MAX_TABLE),
        Operation::action("actions/model-prices/syncLiteLLMPrices", Permission::Admin, Body::EMPTY, sync)
            .doc("Fetches the public price list and takes it over; entries made by hand stay as they are.")
            .errors(&[Code::OPERATION_FAILED, Code::INVALID_FORMAT]),
        Operation::action("actions/model-prices/upsertModelPrice", Permission::Admin, Body::of(MODEL, ENTRY), upsert)
            .doc("Sets one model's price by hand."),
        Operation::action("actions/model-prices/deleteModelPrice", Permission::Admin, Body::of(MODEL, &[]), delete)
            .doc("Removes one model's price; requests for it are unpriced from now on.")
            .errors(&[Code::NOT_FOUND]),
        Operation::action(
            "actions/model-prices/getAvailableModelsByProviderType",
            Permission::Admin,
            Body::of(&[], models::FIELDS),
            models::available,
        )
        .doc("Model names to choose from for providers of a type."),
        Operation::action("actions/model-prices/hasPriceTable", Permission::Any, Body::EMPTY, has_prices)
            .doc("Whether there is any price."),
    ]
}

async fn get_prices(call: Call) -> Result<Vec<PriceRecord>, ApiError> {
    let snapshot = call.ctx.state.snapshot();
    let mut prices: Vec<_> = snapshot.prices.values().collect();
    prices.sort_by(|a, b| a.model.cmp(&b.model));
    Ok(prices.into_iter().map(|price| PriceRecord::new(price)).collect())
}

async fn has_prices(call: Call) -> Result<bool, ApiError> {
    Ok(!call.ctx.state.snapshot().prices.is_empty())
}

async fn upload(call: Call) -> Result<PriceUpload, ApiError> {
    let text = call.values.text("jsonContent").set().unwrap_or_default();
    let taking = Taking {
        source: PriceSource::Manual,
        overwrite_manual: !matches!(call.values.boolean("overwriteManual"), Patch::Set(false)),
        belief: belief(&call),
        now: call.now,
    };
    take(&call, "model-prices.uploadPriceTable", table::parse(&text, "jsonContent")?, taking).await
}

async fn sync(call: Call) -> Result<PriceUpload, ApiError> {
    let address = &call.ctx.price_list;
    let fetched = list::text(address, MAX_TABLE).await;
    let failed = |error| ApiError::new(Code::OPERATION_FAILED, format!("the price list at {address}: {error}"));
    let listed = table::parse(&fetched.map_err(failed)?, "list")?;
    let taking = Taking { source: PriceSource::Sync, overwrite_manual: false, belief: Belief::Usual, now: call.now };
    take(&call, "model-prices.syncLiteLLMPrices", listed, taking).await
}

fn belief(call: &Call) -> Belief {
    match call.values.boolean("force") {
        Patch::Set(true) => Belief::Forced,
        _ => Belief::Usual,
    }
}

async fn take(
    call: &Call,
    action: &'static str,
    listed: serde_json::Map<String, Value>,
    taking: Taking,
) -> Result<PriceUpload, ApiError> {
    let mut tx = call.ctx.store.begin().await?;
    let known = known(&mut tx).await?;
    let (report, prices) = table::sort(listed, &known, taking);
    tx.upsert_prices(&prices).await?;
    let after = json!({
        "added": report.added, "updated": report.updated, "failed": report.failed, "total": report.total,
    });
    let change = Change { action, target: format!("{} prices", prices.len()), before: None, after: Some(after) };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    call.ctx.jobs.reprice_soon();
    Ok(report)
}

async fn known(tx: &mut Tx) -> Result<HashMap<String, Price>, ApiError> {
    Ok(tx.prices().await?.into_iter().map(|price| (price.model.clone(), price)).collect())
}

async fn upsert(call: Call) -> Result<PriceRecord, ApiError> {
    let model = call.values.text("modelName").set().unwrap_or_default();
    let data = call.values.document("priceData").set().unwrap_or_default();
    let taking = Taking { source: PriceSource::Manual, overwrite_manual: true, belief: belief(&call), now: call.now };
    let read = table::read(&model, data, taking);
    let price =
        read.map_err(|reason| ApiError::field(Code::INVALID_FORMAT, "priceData", format!("priceData: {reason}")))?;
    let mut tx = call.ctx.store.begin().await?;
    let before = known(&mut tx).await?.remove(&model);
    tx.upsert_prices(std::slice::from_ref(&price)).await?;
    let shown = PriceRecord::new(&price);
    let change = Change {
        action: "model-prices.upsertModelPrice",
        target: format!("price {model}"),
        before: before.map(|price| recorded(&PriceRecord::new(&price))).transpose()?.flatten(),
        after: recorded(&shown)?,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    call.ctx.jobs.reprice_soon();
    Ok(shown)
}

async fn delete(call: Call) -> Result<(), ApiError> {
    let model = call.values.text("modelName").set().unwrap_or_default();
    let mut tx = call.ctx.store.begin().await?;
    let before = known(&mut tx).await?.remove(&model);
    let before = before.ok_or_else(|| ApiError::missing("price", model.clone()))?;
    tx.delete_price(&model).await?;
    let change = Change {
        action: "model-prices.deleteModelPrice",
        target: format!("price {model}"),
        before: recorded(&PriceRecord::new(&before))?,
        after: None,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await
}
