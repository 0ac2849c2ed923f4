//! Compares vendors' invoices with the ledger: fetches the reports, or takes a billing file, and
//! gives both sides to [`crate::policy::reconcile`]. Nothing is stored.

use crate::crypto::vault::{SealedFor, Vault, VaultError};
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::invoice::{DAY_MS, InvoiceKind, InvoiceSource, VendorReport};
use crate::domain::secret::Secret;
use crate::formats::invoice::{self, Ask, FileKind, MAX_DAYS, ReportKind, Unreadable};
use crate::http_client::report::{self, ReportError};
use crate::policy::reconcile::{Compared, Scope, compare};
use crate::store::{Store, StoreError, StoredInvoiceSource};

/// Reports lag: a day counts as complete this long after its end.
pub const SETTLED_MS: i64 = 6 * 3_600_000;
/// Pages of one report: 31 days with a few thousand lines each.
const MAX_PAGES: usize = 64;

/// Which days, and whose use.
#[derive(Debug, Clone, Copy)]
pub struct Days {
    /// The start of the first day, UTC.
    pub from: Timestamp,
    /// The end of the last day.
    pub until: Timestamp,
    /// The present.
    pub now: Timestamp,
}

/// Why an invoice was not compared; the text can be shown to an administrator.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The report API did not give a report.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The report or the file is not of its form.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The stored key does not open.
    #[error("the administration key {0}")]
    Key(#[from] VaultError),
    /// The pages of a report do not end.
    #[error("the report has more than {MAX_PAGES} pages: ask for fewer days")]
    Endless,
    /// The days are not one to 31.
    #[error("compare 1 to {MAX_DAYS} days, of which the last has begun")]
    Days,
}

impl Days {
    /// Whole days from `from` to before `until`.
    pub fn new(from: Timestamp, until: Timestamp, now: Timestamp) -> Result<Self, ReconcileError> {
        let length = until.since(from) / DAY_MS;
        let has_begun = until.since(now) <= DAY_MS;
        ((1..=MAX_DAYS).contains(&length) && has_begun && from.0 >= 0)
            .then_some(Self { from, until, now })
            .ok_or(ReconcileError::Days)
    }

    /// The days that are over.
    pub const fn complete_until(&self) -> Timestamp {
        Timestamp(self.now.0.saturating_sub(SETTLED_MS))
    }
}

/// Compares a provider's invoice, read from its report API.
pub async fn of_source(
    store: &Store,
    vault: &Vault,
    stored: &StoredInvoiceSource,
    days: Days,
) -> Result<Vec<Compared>, ReconcileError> {
    let source = &stored.source;
    let key = vault.open(SealedFor::InvoiceKey(source.provider_id), &stored.key_cipher)?;
    let mut report = VendorReport {
        costs_by_key: source.kind == InvoiceKind::OpenAi && !source.api_key_ids.is_empty(),
        ..VendorReport::default()
    };
    for part in [ReportKind::Usage, ReportKind::Costs] {
        fetch(source, &key, part, days, &mut report).await?;
    }
    let ledger = store.ledger_days(source.provider_id, days.from, days.until).await?;
    let scope = Scope { api_keys: &source.api_key_ids, complete_until: days.complete_until() };
    Ok(compare(&report, &ledger, scope))
}

/// Compares a provider's billing file.
pub async fn of_file(
    store: &Store,
    provider: ProviderId,
    kind: FileKind,
    text: &str,
    days: Days,
) -> Result<Vec<Compared>, ReconcileError> {
    let mut report = invoice::read_file(kind, text)?;
    let is_asked = |day: Timestamp| (days.from..days.until).contains(&day);
    report.usage.retain(|line| is_asked(line.day));
    report.costs.retain(|line| is_asked(line.day));
    let ledger = store.ledger_days(provider, days.from, days.until).await?;
    let scope = Scope { api_keys: &[], complete_until: days.complete_until() };
    Ok(compare(&report, &ledger, scope))
}

/// What is to be compared.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The only provider; `None`: all that have a source.
    pub provider: Option<ProviderId>,
    /// A billing file in place of the report API, of that provider.
    pub file: Option<(FileKind, &'a str)>,
    /// Which days.
    pub days: Days,
}

/// The result for one provider.
#[derive(Debug)]
pub struct Outcome {
    /// The provider.
    pub provider: ProviderId,
    /// Its name.
    pub name: String,
    /// Every day and model, or why its invoice was not compared.
    pub compared: Result<Vec<Compared>, ReconcileError>,
}

/// Compares invoices, one after the other. Providers without a source are left out, unless a file
/// is given.
pub async fn run(
    store: &Store,
    vault: &Vault,
    wanted: Wanted<'_>,
) -> Result<Vec<Outcome>, StoreError> {
    let sources = store.invoice_sources().await?;
    let mut outcomes = Vec::new();
    for stored in store.load_all().await?.providers {
        let provider = stored.provider;
        if wanted.provider.is_some_and(|id| id != provider.id) {
            continue;
        }
        let source = sources.iter().find(|stored| stored.source.provider_id == provider.id);
        let compared = match (wanted.file, source) {
            (Some((kind, text)), _) => of_file(store, provider.id, kind, text, wanted.days).await,
            (None, Some(source)) => of_source(store, vault, source, wanted.days).await,
            (None, None) => continue,
        };
        outcomes.push(Outcome { provider: provider.id, name: provider.name, compared });
    }
    Ok(outcomes)
}

async fn fetch(
    source: &InvoiceSource,
    key: &Secret,
    part: ReportKind,
    days: Days,
    report: &mut VendorReport,
) -> Result<(), ReconcileError> {
    let mut next: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let ask = Ask {
            part,
            from: days.from,
            until: days.until,
            by_key: report.costs_by_key,
            page: next.as_deref(),
        };
        let (path, query) = invoice::query(source.kind, &ask);
        let url = format!("{}{path}", source.url.trim_end_matches('/'));
        let text = match source.kind {
            InvoiceKind::Anthropic => {
                let version = Secret::new("2023-06-01");
                report::page(&url, &query, &[("x-api-key", key), ("anthropic-version", &version)])
                    .await?
            }
            InvoiceKind::OpenAi => {
                let bearer = Secret::new(format!("Bearer {}", key.expose()));
                report::page(&url, &query, &[("authorization", &bearer)]).await?
            }
        };
        let page = invoice::read(source.kind, part, &text)?;
        let is_asked = |day: Timestamp| (days.from..days.until).contains(&day);
        report.usage.extend(page.usage.into_iter().filter(|line| is_asked(line.day)));
        report.costs.extend(page.costs.into_iter().filter(|line| is_asked(line.day)));
        match page.next {
            None => return Ok(()),
            Some(same) if next.as_ref() == Some(&same) => return Err(ReconcileError::Endless),
            more => next = more,
        }
    }
    Err(ReconcileError::Endless)
}
