//! `reconciliation/*`: where providers' invoices are read from, and their comparison with the
//! ledger.
//!
//! The vendor's administration key is sealed like a provider's credential, and bound to the origin
//! of the report API as that is to the provider's.

use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::actions::providers::fields::OfProvider;
use crate::admin::bodies::{
    BaseUrl, HeaderText, Id, List, Moment, Nothing, OneOf, Patch, Plain, Sent, Text, Url, Usd, With,
};
use crate::admin::call::{AuditChange, Call, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::operation::{Operation, Permission};
use crate::admin::reasons::Reason;
use crate::admin::records::reconciliation::{InvoiceSourceRecord, ReconciliationRecord};
use crate::crypto::vault::{SealedFor, Vault};
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::invoice::{DAY_MS, InvoiceKind, InvoiceSource};
use crate::domain::money::NanoUsd;
use crate::domain::secret::{MASK, Secret};
use crate::formats::invoice::{FileKind, MAX_DAYS};
use crate::jobs::reconcile::{self, Days, SETTLED_MS, Wanted};
use crate::state::reseal;
use crate::store::{Store, StoredInvoiceSource};
use crate::upstream::origin::same_origin;

/// Bytes of a billing file in a body: lines of AI models alone.
pub const MAX_FILE: usize = 16 * 1024 * 1024;
/// The days that are compared where none are named.
const USUAL_DAYS: i64 = 7;

/// Where a provider's invoice is read from.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InvoiceSourceFields {
    /// Whose report API it is. Required for a new source.
    pub kind: Sent<OneOf<InvoiceKind>>,
    /// The address of the report API, without `/v1`; `null`: the vendor's own.
    pub url: Patch<Url<BaseUrl, 1, 2048>>,
    /// The vendor's administration key (Anthropic: `sk-ant-admin…`, OpenAI: `sk-admin-…`).
    /// Write-only: records show it masked. Required for a new source, and for another address.
    pub admin_key: Sent<HeaderText<1, 4096>>,
    /// The vendor's ids of the API keys that the gateway uses; empty or `null`: all keys of the
    /// organization.
    pub api_key_ids: Patch<List<Text<1, 200>, 0, 100>>,
    /// Compare the invoice every day.
    #[schemars(extend("default" = false))]
    pub is_daily: Sent<bool>,
    /// A day's difference above this is reported, USD.
    #[schemars(extend("default" = 1))]
    pub alert_above_usd: Sent<Usd<1_000_000>>,
}

/// What is compared.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconcileQuery {
    /// One provider only; `null`: all that have a source. Required with a file.
    pub provider_id: Option<Id>,
    /// The first day, in UTC; without it the last 7 complete days, or those before `endDate`.
    pub start_date: Option<Moment>,
    /// The last day, in UTC; at most 31 days.
    pub end_date: Option<Moment>,
    /// Whose billing file `csv` is.
    pub file_kind: Option<OneOf<FileKind>>,
    /// A billing file as CSV, in place of the provider's report API: Google Cloud's BigQuery export
    /// or AWS's Cost and Usage Report.
    pub csv: Option<Text<1, MAX_FILE>>,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/reconciliation/getReconciliation", Permission::Admin, compare)
            .reads()
            .doc(
                "Vendors' invoices beside the ledger, by UTC day, provider and model, with the \
                 likeliest cause of each difference. Asks the vendors' report APIs.",
            )
            .max_body(2 * MAX_FILE),
        Operation::action("actions/reconciliation/getInvoiceSources", Permission::Admin, sources)
            .reads()
            .doc("Where providers' invoices are read from, keys masked."),
        Operation::action("actions/reconciliation/saveInvoiceSource", Permission::Admin, save)
            .updates()
            .doc(
                "Adds the source of a provider's invoice, or changes what is sent. Where `url` \
                 gets another origin, `adminKey` must be sent again: else `REQUIRED_FIELD`.",
            )
            .errors(&[Code::NOT_FOUND, Code::OPERATION_FAILED]),
        Operation::action("actions/reconciliation/removeInvoiceSource", Permission::Admin, remove)
            .deletes()
            .doc("Removes the source of a provider's invoice, and its stored key.")
            .errors(&[Code::NOT_FOUND]),
    ]
}

/// A source as it is before any field is put into it.
pub(in crate::admin) fn blank(provider_id: ProviderId, now: Timestamp) -> InvoiceSource {
    InvoiceSource {
        provider_id,
        kind: InvoiceKind::Anthropic,
        url: InvoiceKind::Anthropic.base().to_owned(),
        api_key_ids: Vec::new(),
        is_daily: false,
        alert_above: NanoUsd::usd(1),
        updated_at: now,
    }
}

impl InvoiceSourceFields {
    /// Puts every field that was sent into the source; the key is the caller's business.
    pub fn apply(&self, source: &mut InvoiceSource) {
        let before = source.kind;
        self.kind.apply(&mut source.kind);
        match self.url.plain() {
            Patch::Set(url) => source.url = url,
            Patch::Keep if source.kind == before => {}
            Patch::Keep | Patch::Clear => source.url = source.kind.base().to_owned(),
        }
        self.api_key_ids.plain().apply(&mut source.api_key_ids);
        self.is_daily.apply(&mut source.is_daily);
        self.alert_above_usd.apply(&mut source.alert_above);
    }
}

/// Whether the stored key may be sent to the wanted address.
pub(in crate::admin) fn keeps_key(stored: &InvoiceSource, wanted: &InvoiceSource) -> bool {
    same_origin(&stored.url, &wanted.url)
}

/// The stored key; `None` where it cannot be opened.
pub(in crate::admin) fn key(vault: &Vault, stored: &StoredInvoiceSource) -> Option<Secret> {
    vault.open(SealedFor::InvoiceKey(stored.source.provider_id), &stored.key_cipher).ok()
}

fn shown(call: &Call, stored: &StoredInvoiceSource) -> InvoiceSourceRecord {
    let key = key(call.ctx.node.state.vault(), stored);
    InvoiceSourceRecord::new(stored, key.map_or_else(|| MASK.to_owned(), |key| key.masked()))
}

async fn sources(call: Call, _: Nothing) -> Result<Vec<InvoiceSourceRecord>, ApiError> {
    let sources = call.ctx.node.store.invoice_sources().await?;
    Ok(sources.iter().map(|stored| shown(&call, stored)).collect())
}

async fn save(
    call: Call,
    body: With<OfProvider, InvoiceSourceFields>,
) -> Result<InvoiceSourceRecord, ApiError> {
    let id = ProviderId(body.target.provider_id.0);
    let required =
        |field| Err(ApiError::because(Code::REQUIRED_FIELD, Reason::IsRequired).field(field));
    let mut tx = call.ctx.node.store.begin().await?;
    tx.provider(id).await?.ok_or_else(|| ApiError::missing("provider", id.0))?;
    let mut stored = tx.invoice_sources().await?.into_iter();
    let before = stored.find(|stored| stored.source.provider_id == id);
    let mut after = before.clone().unwrap_or_else(|| StoredInvoiceSource {
        source: blank(id, call.now),
        key_cipher: String::new(),
    });
    body.new.apply(&mut after.source);
    match (&before, body.new.admin_key.plain()) {
        (None, _) if body.new.kind.0.is_none() => return required("kind"),
        (None, None) => return required("adminKey"),
        (Some(before), None) if !keeps_key(&before.source, &after.source) => {
            let why = Reason::OtherDestination;
            return Err(ApiError::because(Code::REQUIRED_FIELD, why).field("adminKey"));
        }
        (_, Some(key)) => {
            let (vault, key) = (call.ctx.node.state.vault(), Secret::new(key));
            after.key_cipher =
                reseal::seal(vault, &mut tx, SealedFor::InvoiceKey(id), &key).await?;
        }
        (Some(_), None) => {}
    }
    if before.as_ref() == Some(&after) {
        return Ok(shown(&call, &after));
    }
    after.source.updated_at = call.now;
    tx.save_invoice_source(&after).await?;
    let record = shown(&call, &after);
    let change = AuditChange {
        action: "reconciliation.saveInvoiceSource",
        target: format!("invoice source of provider {id}"),
        before: before.map(|before| recorded(&shown(&call, &before))).transpose()?.flatten(),
        after: recorded(&record)?,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    Ok(record)
}

async fn remove(call: Call, body: OfProvider) -> Result<(), ApiError> {
    let id = ProviderId(body.provider_id.0);
    let mut tx = call.ctx.node.store.begin().await?;
    let mut stored = tx.invoice_sources().await?.into_iter();
    let before = stored.find(|stored| stored.source.provider_id == id);
    let before = before.ok_or_else(|| ApiError::missing("invoice source", id.0))?;
    tx.delete_invoice_source(id).await?;
    let change = AuditChange {
        action: "reconciliation.removeInvoiceSource",
        target: format!("invoice source of provider {id}"),
        before: recorded(&shown(&call, &before))?,
        after: None,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await
}

/// Whole days from what was asked for.
fn days(start: Option<Moment>, end: Option<Moment>, now: Timestamp) -> Result<Days, ApiError> {
    let day = |time: Timestamp| Timestamp(time.0 - time.0.rem_euclid(DAY_MS));
    let until = end.map_or_else(
        || day(now.plus_ms(-SETTLED_MS)),
        |end| day(end.start(Tz::UTC)).plus_ms(DAY_MS),
    );
    let from = start
        .map_or_else(|| until.plus_ms(-USUAL_DAYS * DAY_MS), |start| day(start.start(Tz::UTC)));
    let refused = |_| {
        let refusal = ApiError::because(Code::INVALID_FORMAT, Reason::ReconcileDays);
        refusal.with("max", MAX_DAYS.into())
    };
    Days::new(from, until, now).map_err(refused)
}

async fn compare(call: Call, body: ReconcileQuery) -> Result<ReconciliationRecord, ApiError> {
    answer(&call.ctx.node.store, call.ctx.node.state.vault(), body, call.now).await
}

/// The answer of `getReconciliation`, which `tollgate reconcile` prints.
///
/// # Errors
/// The days or the file are not as they must be, or the database failed.
pub async fn answer(
    store: &Store,
    vault: &Vault,
    body: ReconcileQuery,
    now: Timestamp,
) -> Result<ReconciliationRecord, ApiError> {
    let required =
        |field| Err(ApiError::because(Code::REQUIRED_FIELD, Reason::IsRequired).field(field));
    let days = days(body.start_date, body.end_date, now)?;
    let provider = body.provider_id.map(|id| ProviderId(id.0));
    let file = match (body.file_kind.plain(), &body.csv) {
        (Some(kind), Some(text)) => Some((kind, text.0.as_str())),
        (None, Some(_)) => return required("fileKind"),
        (Some(_), None) => return required("csv"),
        (None, None) => None,
    };
    if file.is_some() && provider.is_none() {
        return required("providerId");
    }
    let wanted = Wanted { provider, file, days };
    let outcomes = reconcile::run(store, vault, wanted).await?;
    if let (Some(id), true) = (provider, outcomes.is_empty()) {
        return Err(ApiError::missing("invoice source", id.0));
    }
    Ok(ReconciliationRecord::new(days, outcomes))
}
