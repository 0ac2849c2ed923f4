//! The public price list: taken over when an administrator asks for it, and each day by itself.
//!
//! A list that cannot be fetched or read changes nothing, and an invalid entry fails alone. Entries
//! made by hand stay, and so do seeded ones if the operator named their file. Every change is
//! audited, with the fields that changed.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::table::{self, MAX_TABLE, Taking};
use crate::admin::Context;
use crate::admin::bodies::Nothing;
use crate::admin::call::{Call, commit};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::admin::records::Iso;
use crate::admin::records::price::{PriceSyncRecord, PriceUpload};
use crate::domain::clock::Timestamp;
use crate::domain::price::{Price, PriceSource};
use crate::http_client::list;
use crate::policy::cost::Belief;
use crate::store::AuditEntry;

/// The job of the daily sync.
pub const JOB: &str = "price_sync";

/// Changed models whose fields are kept.
const MOST_SHOWN: usize = 200;

/// What the last daily sync did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncReport {
    /// When it began; zero before the first one.
    pub at: Timestamp,
    /// Why nothing was taken over.
    pub error: Option<String>,
    /// Models that had no entry before.
    pub added: u64,
    /// Models whose entry changed.
    pub updated: u64,
    /// Entries that were not taken.
    pub failed: u64,
    /// Entries in the list.
    pub total: u64,
    /// The fields that changed.
    pub changes: Changes,
}

/// Fields of entries by model, before and after.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// As they were.
    pub before: Map<String, Value>,
    /// As they are.
    pub after: Map<String, Value>,
}

/// Who takes a table over.
pub struct SyncedBy<'a> {
    ctx: &'a Context,
    actor: String,
    action: &'static str,
    client_addr: Option<String>,
}

impl<'a> SyncedBy<'a> {
    /// The caller of an action.
    ///
    /// # Errors
    /// 401 when there is none.
    pub fn call(call: &'a Call, action: &'static str) -> Result<Self, ApiError> {
        let client_addr = call.client.map(|ip| ip.to_string());
        Ok(Self { ctx: &call.ctx, actor: call.who()?.label(), action, client_addr })
    }
}

const ACTION: &str = "model-prices.syncLiteLLMPrices";

/// `model-prices/syncLiteLLMPrices`
///
/// # Errors
/// The list cannot be fetched or read, or the store failed.
pub(super) async fn now(call: Call, _: Nothing) -> Result<PriceUpload, ApiError> {
    let listed = fetched(&call.ctx).await?;
    let taken = take(&SyncedBy::call(&call, ACTION)?, listed, of_list(&call.ctx, call.now)).await;
    taken.map(|(report, _)| report)
}

/// The daily sync.
pub async fn daily(ctx: &Context, now: Timestamp) -> SyncReport {
    let by = SyncedBy { ctx, actor: "price sync".to_owned(), action: ACTION, client_addr: None };
    let taken = async { take(&by, fetched(ctx).await?, of_list(ctx, now)).await };
    let count = |list: &[String]| list.len() as u64;
    match taken.await {
        Ok((report, changes)) => {
            let (added, updated) = (count(&report.added), count(&report.updated));
            let (failed, total) = (count(&report.failed), report.total as u64);
            tracing::info!(added, updated, failed, total, "the price list was taken over");
            SyncReport { at: now, error: None, added, updated, failed, total, changes }
        }
        Err(refusal) => {
            let error = refusal.message();
            tracing::warn!(error, "the price list was not taken over: the present prices stay");
            SyncReport { at: now, error: Some(error), ..SyncReport::default() }
        }
    }
}

/// `model-prices/getPriceSync`
pub(super) async fn last(call: Call, _: Nothing) -> Result<PriceSyncRecord, ApiError> {
    let job = call.ctx.node.store.job::<SyncReport>(JOB).await?;
    let report = job.map(|job| job.report).unwrap_or_default();
    Ok(PriceSyncRecord {
        mode: call.ctx.node.live.load().price_sync.as_str(),
        address: call.ctx.price_list.clone(),
        last_at: (report.at.0 > 0).then_some(Iso(report.at)),
        error: report.error,
        added: report.added,
        updated: report.updated,
        failed: report.failed,
        total: report.total,
        before: report.changes.before,
        after: report.changes.after,
    })
}

const fn of_list(ctx: &Context, now: Timestamp) -> Taking {
    Taking {
        source: PriceSource::Sync,
        overwrite_manual: false,
        keep_seed: ctx.has_own_seed,
        belief: Belief::Usual,
        now,
    }
}

async fn fetched(ctx: &Context) -> Result<Map<String, Value>, ApiError> {
    let address = &ctx.price_list;
    let failed = |error: list::ListError| {
        let refusal = ApiError::because(Code::OPERATION_FAILED, Reason::PriceListFailed);
        refusal.with("address", address.as_str().into()).with("detail", error.to_string().into())
    };
    table::parse(&list::text(address, MAX_TABLE).await.map_err(failed)?, "list")
}

/// Takes a table over, in one transaction.
///
/// # Errors
/// The store failed: then nothing is changed.
pub(super) async fn take(
    by: &SyncedBy<'_>,
    listed: Map<String, Value>,
    taking: Taking,
) -> Result<(PriceUpload, Changes), ApiError> {
    let mut tx = by.ctx.node.store.begin().await?;
    let known = table::known(&mut tx).await?;
    let (report, prices) = table::sort(listed, &known, taking);
    if prices.is_empty() {
        return Ok((report, Changes::default()));
    }
    tx.upsert_prices(&prices).await?;
    let changes =
        Changes::of(prices.iter().filter_map(|after| Some((known.get(&after.model)?, after))));
    let after = json!({
        "added": report.added, "updated": report.updated, "failed": report.failed,
        "total": report.total, "changes": changes.after,
    });
    let entry = AuditEntry {
        at: taking.now,
        actor: by.actor.clone(),
        action: by.action.to_owned(),
        target: format!("{} prices", prices.len()),
        before: Some(json!({ "changes": changes.before })),
        after: Some(after),
        client_addr: by.client_addr.clone(),
    };
    tx.audit(&entry).await?;
    commit(by.ctx, tx).await?;
    by.ctx.jobs.reprice_soon();
    Ok((report, changes))
}

impl Changes {
    /// The fields that differ, of as many models as are shown.
    fn of<'p>(changed: impl Iterator<Item = (&'p Price, &'p Price)>) -> Self {
        let mut changes = Self::default();
        for (before, after) in changed.take(MOST_SHOWN) {
            let (old, new) = (before.data.parse(), after.data.parse());
            let fields = |one: &Value, other: &Value| {
                let all = one.as_object().into_iter().flatten();
                let differing = all.filter(|(name, value)| other.get(name.as_str()) != Some(value));
                differing.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>()
            };
            changes.before.insert(before.model.clone(), fields(&old, &new).into());
            changes.after.insert(after.model.clone(), fields(&new, &old).into());
        }
        changes
    }
}
