//! `model-prices/*`: the price table.
//!
//! A table is applied entry by entry ([`table`]): an invalid one fails alone and is listed with its
//! reason. Every change of a price also starts the pricing of requests without one.

pub mod models;
pub mod sync;
pub(in crate::admin) mod table;
mod unpriced;

use schemars::JsonSchema;
use serde::Deserialize;

use self::table::{MAX_NAME, MAX_TABLE, Taking};
use crate::admin::bodies::{Document, Nothing, Text};
use crate::admin::call::{AuditChange, Call, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::operation::{OPEN_BODY, Operation, Permission};
use crate::admin::records::price::{PriceRecord, PriceUpload};
use crate::domain::price::{Price, PriceSource};
use crate::policy::cost::Belief;

/// Maximum bytes of one entry.
const MAX_ENTRY: usize = 64 * 1024;

/// A price table.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadPrices {
    /// A JSON object as text: model name → entry with `input_cost_per_token`,
    /// `output_cost_per_token` and the like, in USD.
    pub json_content: Text<2, MAX_TABLE>,
    /// When false, entries that were entered by hand before are kept as they are.
    #[serde(default = "yes")]
    pub overwrite_manual: bool,
    /// Also accept implausible prices (above 1 USD per token).
    #[serde(default)]
    pub force: bool,
}

/// Which price.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfModel {
    /// As clients, or providers, call the model.
    pub model_name: Text<1, MAX_NAME>,
}

/// The body of `model-prices/upsertModelPrice`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetPrice {
    /// As clients, or providers, call the model.
    pub model_name: Text<1, MAX_NAME>,
    /// The entry: `input_cost_per_token`, `output_cost_per_token` and the like, in USD; unknown
    /// fields are kept.
    pub price_data: Document<MAX_ENTRY>,
    /// Also accept implausible prices (above 1 USD per token).
    #[serde(default)]
    pub force: bool,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/model-prices/getModelPrices", Permission::Admin, get_prices)
            .reads()
            .doc("The whole price table."),
        Operation::action(
            "actions/model-prices/getUnpricedModels",
            Permission::Admin,
            unpriced::list,
        )
        .report()
        .doc(
            "The models that have no price: of requests without a cost, and listed by name at \
              enabled providers.",
        ),
        Operation::action("actions/model-prices/uploadPriceTable", Permission::Admin, upload)
            .creates()
            .doc("Adds and updates prices; a bad entry fails alone and is named.")
            .max_body(2 * MAX_TABLE),
        Operation::action("actions/model-prices/syncLiteLLMPrices", Permission::Admin, sync::now)
            .doc(
                "Fetches the public price list and takes it over; entries made by hand stay as \
                  they are.",
            )
            .errors(&[Code::OPERATION_FAILED, Code::INVALID_FORMAT]),
        Operation::action("actions/model-prices/getPriceSync", Permission::Admin, sync::last)
            .reads()
            .doc("When the price list was last fetched by itself, and what that changed."),
        Operation::action("actions/model-prices/upsertModelPrice", Permission::Admin, upsert)
            .doc("Sets one model's price by hand."),
        Operation::action("actions/model-prices/deleteModelPrice", Permission::Admin, delete)
            .deletes()
            .doc("Removes one model's price; requests for it are unpriced from now on.")
            .errors(&[Code::NOT_FOUND]),
        Operation::action(
            "actions/model-prices/getAvailableModelsByProviderType",
            Permission::Admin,
            models::available,
        )
        .reads()
        .doc("Model names to choose from for providers of a type."),
        Operation::action("actions/model-prices/hasPriceTable", Permission::Open, has_prices)
            .reads()
            .doc("Whether there is any price.")
            .max_body(OPEN_BODY),
    ]
}

const fn yes() -> bool {
    true
}

async fn get_prices(call: Call, _: Nothing) -> Result<Vec<PriceRecord>, ApiError> {
    let snapshot = call.ctx.node.state.snapshot();
    let mut prices: Vec<_> = snapshot.prices.values().collect();
    prices.sort_by(|a, b| a.model.cmp(&b.model));
    Ok(prices.into_iter().map(|price| PriceRecord::new(price)).collect())
}

async fn has_prices(call: Call, _: Nothing) -> Result<bool, ApiError> {
    Ok(!call.ctx.node.state.snapshot().prices.is_empty())
}

async fn upload(call: Call, body: UploadPrices) -> Result<PriceUpload, ApiError> {
    let taking = Taking {
        source: PriceSource::Manual,
        overwrite_manual: body.overwrite_manual,
        keep_seed: false,
        belief: belief(body.force),
        now: call.now,
    };
    let listed = table::parse(&body.json_content.0, "jsonContent")?;
    let by = sync::SyncedBy::call(&call, "model-prices.uploadPriceTable")?;
    sync::take(&by, listed, taking).await.map(|(report, _)| report)
}

const fn belief(force: bool) -> Belief {
    if force { Belief::Forced } else { Belief::Usual }
}

async fn upsert(call: Call, body: SetPrice) -> Result<PriceRecord, ApiError> {
    let model = body.model_name.0;
    let taking = Taking {
        source: PriceSource::Manual,
        overwrite_manual: true,
        keep_seed: false,
        belief: belief(body.force),
        now: call.now,
    };
    let read = table::read(&model, body.price_data.0.into(), taking);
    let price = read.map_err(|fault| fault.refusal().field("priceData"))?;
    let mut tx = call.ctx.node.store.begin().await?;
    let before = table::known(&mut tx).await?.remove(&model);
    if let Some(before) = &before
        && *before == (Price { updated_at: before.updated_at, ..price.clone() })
    {
        return Ok(PriceRecord::new(before));
    }
    tx.upsert_prices(std::slice::from_ref(&price)).await?;
    let shown = PriceRecord::new(&price);
    let change = AuditChange {
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

async fn delete(call: Call, body: OfModel) -> Result<(), ApiError> {
    let model = body.model_name.0;
    let mut tx = call.ctx.node.store.begin().await?;
    let before = table::known(&mut tx).await?.remove(&model);
    let before = before.ok_or_else(|| ApiError::missing("price", model.clone()))?;
    tx.delete_price(&model).await?;
    let change = AuditChange {
        action: "model-prices.deleteModelPrice",
        target: format!("price {model}"),
        before: recorded(&PriceRecord::new(&before))?,
        after: None,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await
}
