//! What an attempt cost that lost against another provider's. The user is not charged for it: it is
//! in the request's decision chain, and in the ledger as the gateway's own, in a row without a key.
//! So the limits and the statistics of its provider count it.

use std::sync::Arc;

use super::context::{RequestContext, millis};
use super::record::{AskedProvider, Ending};
use super::settle;
use crate::domain::ids::RequestId;
use crate::domain::record::{Decision, DecisionStep, Record};
use crate::formats::usage::Bill;
use crate::limits::Permit;

/// An attempt that lost.
pub(super) struct LostAttempt {
    /// The id of its row in the ledger.
    pub id: RequestId,
    pub asked: AskedProvider,
    /// What the client asked its provider for.
    pub model: Arc<str>,
    /// The provider's status, if it had answered.
    pub status: Option<u16>,
    /// What it used; `None` = the provider has not got the request.
    pub bill: Option<Bill>,
    /// Why it was cancelled.
    pub why: String,
}

impl RequestContext {
    /// Notes an attempt that lost, and what it cost. `permit`: that of the second attempt.
    pub(super) fn lost(&mut self, lost: LostAttempt, permit: Option<Permit>) {
        let LostAttempt { id, asked, model, status, bill, why } = lost;
        let (at_ms, took_ms) = (self.elapsed_ms(), millis(asked.began.elapsed()));
        let provider = Arc::clone(&asked.provider);
        let upstream = Arc::clone(&asked.model);
        let Some(record) = &mut self.record else { return };
        let snapshot = Arc::clone(&record.snapshot);
        let mut bill = bill.and_then(|bill| record.bill_of_other(asked, bill));
        let mut decision = Decision {
            provider_id: Some(provider.id),
            provider_name: provider.name.as_str().into(),
            step: DecisionStep::HedgeLost,
            detail: None,
            status,
            at_ms,
            took_ms: Some(took_ms),
            usage: bill.as_ref().map(|bill| bill.usage),
        };
        let multiplier = provider.multiplier();
        let charged = bill.as_mut().map(|bill| {
            let (price, cost) = settle::charge(&snapshot, [&model, &upstream], multiplier, bill);
            (price.map(|price| price.model.clone()), cost)
        });
        let said = match charged.as_ref().map(|(_, cost)| cost) {
            None => why,
            Some(None) => format!("{why}; its cost is not known: no price (request {id})"),
            Some(Some(cost)) => format!("{why}; it cost the gateway {cost} USD (request {id})"),
        };
        decision.detail = Some(said.as_str().into());
        record.decisions.push(decision);
        let admitted = record.permit.as_ref().and_then(Permit::admitted);
        let gateway = &self.gateway;
        gateway.node.metrics.attempt(&provider.name, "hedge_lost");
        let Some((bill, (price, cost))) = bill.zip(charged) else { return };
        gateway.node.metrics.hedges.lost(&provider.name, cost);
        if let Some(permit) = permit {
            permit.settle_cancelled(self.now(), cost.unwrap_or_default(), provider.id);
        }
        let ending = Ending {
            error: Some(format!("of request {}: {said}", self.id)),
            ..Ending::client_aborted()
        };
        let other = price.filter(|price| **price != *model);
        let row = Record {
            request_id: id,
            admitted_ms: admitted.map_or(0, |at| at.since(self.started_at)),
            provider_id: Some(provider.id),
            provider_name: Some(provider.name.as_str().into()),
            provider_format: Some(provider.kind.format()),
            endpoint: format!("{}#hedge", self.head.endpoint).into(),
            upstream_model: Some(upstream).filter(|upstream| *upstream != model),
            model,
            streamed: true,
            usage: bill.usage,
            cost,
            price_model: other.map(|price| price.as_str().into()),
            parts: bill.parts,
            cost_multiplier: multiplier,
            estimated: bill.estimated,
            duration_ms: took_ms,
            attempts: 1,
            user_agent: None,
            client_addr: None,
            ..settle::of_stranger(self, &ending)
        };
        if let Err(e) = gateway.ledger.append(&row) {
            tracing::error!(request_id = %id, error = %e, "the journal did not take a record");
        }
    }
}
