//! `invoice_difference`: once a day, the invoices of providers whose source is set to daily are
//! compared with the ledger. A day's difference above the source's bound is sent once, and so is an
//! invoice that could not be read. They use the webhook of `cost_alert`.

use serde::Serialize;

use super::delivery::{Outbox, Parcel};
use super::message::{self, MessageKind, Urgency, Usd};
use super::{Notifier, NotifyError};
use crate::domain::clock::Timestamp;
use crate::domain::invoice::DAY_MS;
use crate::jobs::reconcile::{Days, ReconcileError, SETTLED_MS, of_source};
use crate::policy::reconcile::{Cause, DayTotal, day_totals};
use crate::store::StoredInvoiceSource;

const JOB: &str = "reconcile";
const HOLD_MS: i64 = 15 * 60_000;
/// Days that are compared again, as reports are corrected late.
const AGAIN: i64 = 3;
/// How long a difference is known that was sent.
const KNOWN_MS: i64 = 40 * DAY_MS;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InvoiceData<'a> {
    provider_id: i64,
    provider_name: &'a str,
    /// The day in UTC, `YYYY-MM-DD`; `null`: the invoice could not be read.
    date: Option<String>,
    /// The vendor's amount beyond the ledger's.
    difference: Option<Usd>,
    /// The cause of the largest difference.
    cause: Option<&'static str>,
    /// Why the invoice could not be read.
    error: Option<String>,
}

pub(super) async fn if_due(notifier: &Notifier, outbox: &Outbox) -> Result<(), NotifyError> {
    let mut sources = notifier.node.store.invoice_sources().await?;
    sources.retain(|stored| stored.source.is_daily);
    if sources.is_empty() {
        return Ok(());
    }
    let now = notifier.now().await?;
    let settled = now.plus_ms(-SETTLED_MS);
    let today = Timestamp(settled.0 - settled.0.rem_euclid(DAY_MS));
    let store = &notifier.node.store;
    let job = store.job::<()>(JOB).await?;
    // A time ahead of the present was noted while a clock was ahead.
    let is_done = |done: Timestamp| (today..=now).contains(&done);
    if job.is_some_and(|job| is_done(job.done_for) || job.is_held(now, HOLD_MS)) {
        return Ok(());
    }
    let node = uuid::Uuid::new_v4().to_string();
    if !store.take_job(JOB, &node, now, now.plus_ms(HOLD_MS)).await? {
        return Ok(());
    }
    let from = today.plus_ms(-AGAIN * DAY_MS);
    for stored in &sources {
        let compared = match Days::new(from, today, now) {
            Ok(days) => of_source(store, notifier.node.state.vault(), stored, days).await,
            Err(error) => Err(error),
        };
        let check = Check { notifier, outbox, stored, now };
        match compared {
            Ok(compared) => {
                for total in day_totals(&compared, settled) {
                    check.difference(total).await?;
                }
            }
            Err(error) => check.unread(&error, today).await?,
        }
    }
    Ok(store.leave_job(JOB, &node, Some(today)).await?)
}

struct Check<'a> {
    notifier: &'a Notifier,
    outbox: &'a Outbox,
    stored: &'a StoredInvoiceSource,
    now: Timestamp,
}

impl Check<'_> {
    async fn difference(&self, total: DayTotal) -> Result<(), NotifyError> {
        let source = &self.stored.source;
        if total.money.0.saturating_abs() <= source.alert_above.0 {
            return Ok(());
        }
        let date = total.day.to_utc().format("%Y-%m-%d").to_string();
        let cause = total.cause.map(Cause::as_str);
        let notice = format!("invoice:{}:{date}", source.provider_id);
        let name = self.name();
        let title = format!(
            "The invoice of {name} for {date} differs by {} USD: {}",
            total.money,
            total.cause.map_or("no single cause", Cause::text)
        );
        let data = InvoiceData {
            provider_id: source.provider_id.0,
            provider_name: &name,
            date: Some(date),
            difference: Some(Usd(total.money)),
            cause,
            error: None,
        };
        self.send(&notice, &title, Urgency::Warning, &data).await
    }

    async fn unread(&self, error: &ReconcileError, today: Timestamp) -> Result<(), NotifyError> {
        let source = &self.stored.source;
        let (name, error) = (self.name(), error.to_string());
        let title = format!("The invoice of {name} could not be read: {error}");
        let data = InvoiceData {
            provider_id: source.provider_id.0,
            provider_name: &name,
            date: None,
            difference: None,
            cause: None,
            error: Some(error),
        };
        let notice = format!("invoice:{}:unread:{}", source.provider_id, today.0);
        self.send(&notice, &title, Urgency::Error, &data).await
    }

    fn name(&self) -> String {
        let id = self.stored.source.provider_id;
        let snapshot = self.notifier.node.state.snapshot();
        let found = snapshot.providers.iter().find(|provider| provider.id == id);
        found.map_or_else(|| format!("provider {id}"), |provider| provider.name.clone())
    }

    async fn send(
        &self,
        notice: &str,
        title: &str,
        level: Urgency,
        data: &InvoiceData<'_>,
    ) -> Result<(), NotifyError> {
        let ends = self.now.plus_ms(KNOWN_MS);
        if !self.notifier.node.store.claim_notice(notice, self.now, ends).await? {
            return Ok(());
        }
        tracing::warn!(provider = data.provider_id, "{title}");
        let Some(stored) = self.notifier.settings().await? else { return Ok(()) };
        let settings = &stored.settings;
        let address = settings.cost_alert_webhook.clone().filter(|_| settings.cost_alert_enabled);
        let Some(address) = address else { return Ok(()) };
        let kind = MessageKind::InvoiceDifference;
        let body = message::text(kind, title, level, self.now, data);
        let secret = self.notifier.secret(&stored)?;
        self.outbox.post(Parcel { kind, address, body, secret });
        Ok(())
    }
}
