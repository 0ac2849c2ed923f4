//! Puts a document in effect: each section in its order, then the audit records.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::faults::Faults;
use super::plan::Plan;
use super::work::{Applied, By, Desk, Order, Work};
use super::{
    SECTIONS, VERSION, error_rules, invoices, notifications, prices, providers, settings, users,
    words,
};
use crate::admin::envelope::{ApiError, Code};
use crate::store::{Tx, WholeDatabase};

/// Puts a document in effect within the transaction.
///
/// # Errors
/// Every fault of the document, each with its place; or the store failed. The transaction is to be
/// dropped then.
pub async fn apply(desk: Desk<'_>, tx: &mut Tx, order: Order, by: By) -> Result<Applied, ApiError> {
    let WholeDatabase { everything, notifications, error_rules, .. } = tx.whole().await?;
    let mut work = Work {
        desk,
        prune: order.prune,
        dry_run: order.dry_run,
        may_take_last_key: order.may_take_last_key,
        stored: everything,
        stored_notifications: notifications,
        stored_rules: error_rules,
        tx,
        faults: Faults::default(),
        plan: Plan::default(),
        generated: Vec::new(),
        removed: HashSet::new(),
        ended: Vec::new(),
        prices_changed: false,
        audits: Vec::new(),
        by,
    };
    work.sections(order.document).await?;
    std::mem::take(&mut work.faults).into_result()?;
    for entry in &work.audits {
        work.tx.audit(entry).await?;
    }
    let mut plan = work.plan;
    if !order.dry_run {
        plan.generated_keys = work.generated;
    }
    Ok(Applied { plan, prices_changed: work.prices_changed, ended: work.ended })
}

impl Work<'_> {
    async fn sections(&mut self, mut document: Map<String, Value>) -> Result<(), ApiError> {
        let unknown = document.keys().filter(|name| !SECTIONS.contains(&name.as_str()));
        for name in unknown.cloned().collect::<Vec<_>>() {
            self.unknown("", &name, SECTIONS.into_iter());
        }
        match document.remove("version") {
            Some(version) if version.as_i64() == Some(VERSION) => {}
            Some(_) => {
                self.faults.add(Code::INVALID_FORMAT, "/version", &format!("must be {VERSION}"))
            }
            None => self.faults.add(
                Code::REQUIRED_FIELD,
                "/version",
                &format!("is required: write `version: {VERSION}`"),
            ),
        }
        settings::apply(self, document.remove("settings")).await?;
        notifications::apply(self, document.remove("notifications")).await?;
        providers::apply(self, document.remove("providers")).await?;
        invoices::apply(self, document.remove("invoice_sources")).await?;
        users::apply(self, document.remove("users")).await?;
        let entries = self.map(document.remove("prices"), "/prices");
        let forced = self.map(document.remove("forced_prices"), "/forced_prices");
        if entries.is_some() || forced.is_some() {
            prices::apply(self, entries.unwrap_or_default(), forced.unwrap_or_default()).await?;
        }
        words::apply(self, document.remove("words")).await?;
        error_rules::apply(self, document.remove("error_rules")).await?;
        Ok(())
    }
}
