//! What an attempt cost that lost against another provider's. The user is not charged for it: it is
//! in the request's decision chain, and in the ledger as the gateway's own, in a row without a key.
//! So the limits and the statistics of its provider count it.

use std::sync::Arc;

use super::context::{RequestContext, millis};
use super::record::{AskedProvider, Ending, OpenRecord};
use super::settle;
use crate::domain::ids::RequestId;
use crate::domain::money::NanoUsd;
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

/// What it cost.
struct LossCharge {
    bill: Bill,
    /// `None` = its model has no price.
    cost: Option<NanoUsd>,
    /// The price entry, if it is not the requested model's own.
    price_model: Option<Arc<str>>,
}

impl RequestContext {
    /// Notes an attempt that lost, and what it cost. `permit`: that of the second attempt.
    pub(super) fn lost(&mut self, mut lost: LostAttempt, permit: Option<Permit>) {
        let (at_ms, took_ms) = (self.elapsed_ms(), millis(lost.asked.began.elapsed()));
        let provider = Arc::clone(&lost.asked.provider);
        self.gateway.node.metrics.attempt(&provider.name, "hedge_lost");
        let Some(record) = &mut self.record else { return };
        let charged = charge(record, &mut lost);
        let (id, why) = (lost.id, &lost.why);
        let said = match charged.as_ref().map(|charged| charged.cost) {
            None => why.clone(),
            Some(None) => format!("{why}; its cost is not known: no price (request {id})"),
            Some(Some(cost)) => format!("{why}; it cost the gateway {cost} USD (request {id})"),
        };
        record.decisions.push(Decision {
            provider_id: Some(provider.id),
            provider_name: provider.name.as_str().into(),
            step: DecisionStep::HedgeLost,
            detail: Some(said.as_str().into()),
            status: lost.status,
            at_ms,
            took_ms: Some(took_ms),
            usage: charged.as_ref().map(|charged| charged.bill.usage),
        });
        let Some(charged) = charged else { return };
        self.gateway.node.metrics.hedges.lost(&provider.name, charged.cost);
        if charged.cost.is_none() {
            let unpriced = &self.gateway.node.unpriced_models;
            unpriced.note(&lost.model, Some(&lost.asked.model), self.now());
        }
        if let Some(permit) = permit {
            permit.settle_cancelled(self.now(), charged.cost.unwrap_or_default(), provider.id);
        }
        let row = row(self, lost, charged, &said);
        if let Err(e) = self.gateway.ledger.append(&row) {
            tracing::error!(request_id = %id, error = %e, "the journal did not take a record");
        }
    }
}

/// Prices an attempt that lost, as if it had answered.
fn charge(record: &mut OpenRecord, lost: &mut LostAttempt) -> Option<LossCharge> {
    let AskedProvider { provider, model, began, .. } = &lost.asked;
    let asked = AskedProvider {
        provider: Arc::clone(provider),
        model: Arc::clone(model),
        began: *began,
        reply: None,
    };
    let mut bill = record.bill_of_other(asked, lost.bill.take()?)?;
    let (names, multiplier) = ([&*lost.model, &**model], provider.multiplier());
    let (price, cost) = settle::charge(&record.snapshot, names, multiplier, &mut bill);
    let other = price.filter(|price| *price.model != *lost.model);
    Some(LossCharge { cost, price_model: other.map(|price| price.model.as_str().into()), bill })
}

/// The row of the ledger. It counts in the windows and sums that the request counts in.
fn row(ctx: &RequestContext, lost: LostAttempt, charged: LossCharge, said: &str) -> Record {
    let LostAttempt {
        id,
        asked: AskedProvider { provider, model: upstream, began, .. },
        model,
        ..
    } = lost;
    let LossCharge { bill, cost, price_model } = charged;
    let permit = ctx.record.as_ref().and_then(|record| record.permit.as_ref());
    let admitted = permit.and_then(Permit::admitted);
    let why = Some(format!("of request {}: {said}", ctx.id));
    let ending = Ending { error: why, ..Ending::client_aborted() };
    Record {
        request_id: id,
        admitted_ms: admitted.map_or(0, |at| at.since(ctx.started_at)),
        provider_id: Some(provider.id),
        provider_name: Some(provider.name.as_str().into()),
        provider_format: Some(provider.kind.format()),
        endpoint: format!("{}#hedge", ctx.head.endpoint).into(),
        upstream_model: Some(upstream).filter(|upstream| *upstream != model),
        model,
        streamed: true,
        usage: bill.usage,
        cost,
        price_model,
        parts: bill.parts,
        cost_multiplier: provider.multiplier(),
        estimated: bill.estimated,
        duration_ms: millis(began.elapsed()),
        attempts: 1,
        user_agent: None,
        client_addr: None,
        ..settle::of_stranger(ctx, &ending)
    }
}
