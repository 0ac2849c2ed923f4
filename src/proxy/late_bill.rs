//! Bills a reply that its provider makes in the background: the request stays open, with its
//! reservation, until the reply has ended. Then it gets its one record, by what the client or the
//! gateway fetched, whichever comes first (`polling.rs`).

use std::sync::Arc;

use rust_decimal::Decimal;

use super::context::RequestContext;
use super::gateway::Gateway;
use super::held;
use super::pending_replies::{PendingBatch, PendingReply};
use super::record::{self, Ending, OpenRecord};
use super::settle;
use crate::domain::batch::BatchAsk;
use crate::domain::format::WireFormat;
use crate::domain::ids::{CredentialId, ProviderId};
use crate::domain::money::NanoUsd;
use crate::domain::part::Part;
use crate::domain::record::{Decision, DecisionStep, Record, RequestOutcome};
use crate::domain::usage::Usage;
use crate::formats::peek::Peek;
use crate::formats::usage::{Bill, ReplyState, UsageReader};
use crate::otlp::RequestTrace;
use crate::policy::reservation::{self, Forecast, Reservation};
use crate::state::NodeEvent;

/// Who saw the end of a reply.
#[derive(Debug, Clone, Copy)]
pub(super) enum SeenBy {
    Client,
    Gateway,
}

/// What is billed if the reply's end is never seen: the input of the request, and the output that it
/// would have reserved.
pub(super) fn expected(ctx: &RequestContext, record: &OpenRecord, peek: &Peek) -> Bill {
    let input = record.estimated_input();
    let Some(asked) = &record.asked else { return Bill::of_input(input) };
    let requested = record.body.as_ref().map_or(&asked.model, |body| &body.model);
    let price = record.snapshot.price_for(requested, &asked.model);
    let key = record.caller.key_id();
    let usual = key.and_then(|key| ctx.gateway.node.counters.expected_output(key, requested));
    let (max_tokens, choices) = peek.output_bound(WireFormat::Responses);
    let forecast = Forecast {
        input,
        input_bound: input,
        max_tokens,
        choices,
        usual_output: usual,
        tool_tokens: None,
        is_fast: false,
    };
    let most = price.and_then(|price| price.max_output);
    let mut bill = Bill::of_input(input);
    bill.usage.output = reservation::output_tokens(Reservation::Expected, &forecast, most);
    bill
}

/// Keeps a request open whose reply its provider still makes.
pub(super) fn keep_open(
    record: OpenRecord,
    ctx: &RequestContext,
    trace: Option<Box<RequestTrace>>,
    ending: &Ending,
    reply: String,
) {
    let Some(pending) = unfinished(record, ctx, trace, ending, reply) else { return };
    if let Some(key) = pending.record.key_id {
        ctx.gateway.stored_history.note(key, &pending.reply, pending.holder());
    }
    if let Some(other) = ctx.gateway.pending_replies.keep(pending) {
        bill_estimate(&ctx.gateway, other, "the provider gave its id to another reply");
    }
}

/// Bills a batch that the provider may have made, but whose id is not known.
pub(super) fn unseen(
    record: OpenRecord,
    ctx: &RequestContext,
    trace: Option<Box<RequestTrace>>,
    ending: &Ending,
) {
    if let Some(pending) = unfinished(record, ctx, trace, ending, String::new()) {
        bill_estimate(&ctx.gateway, pending, "the provider did not say whether it made the batch");
    }
}

fn unfinished(
    record: OpenRecord,
    ctx: &RequestContext,
    trace: Option<Box<RequestTrace>>,
    ending: &Ending,
    reply: String,
) -> Option<PendingReply> {
    let asked = record.asked.as_ref();
    let credential = asked.map_or(CredentialId::KEY, |asked| asked.provider.credential_id());
    let batch = record.batch().and_then(|batch| estimated(ctx, &record, batch));
    let settle::UnfinishedRequest { mut record, permit, features } =
        record.unfinished(ctx, trace, ending);
    let batch = batch.map(|EstimatedBatch { pending, usage, cost, multiplier }| {
        (record.usage, record.cost, record.estimated) = (usage, Some(cost), true);
        record.cost_multiplier = multiplier;
        pending
    });
    let mut pending = PendingReply::new(reply, record, features, permit, batch)?;
    pending.credential = credential;
    Some(pending)
}

/// A batch, and what is billed if its results are never seen.
struct EstimatedBatch {
    pending: PendingBatch,
    usage: Usage,
    cost: NanoUsd,
    /// The provider's, which `cost` contains.
    multiplier: Decimal,
}

fn estimated(
    ctx: &RequestContext,
    record: &OpenRecord,
    ask: Arc<BatchAsk>,
) -> Option<EstimatedBatch> {
    let (gateway, provider) = (&ctx.gateway, &record.asked.as_ref()?.provider);
    let key = record.caller.key_id();
    let usual = |model: &str| gateway.node.counters.expected_output(key?, model);
    let estimate = |mode| record.snapshot.estimate_of_batch(mode, provider, &ask, usual);
    let (usage, cost) = estimate(Reservation::Expected);
    let reserved = match gateway.fixed.reservation {
        Reservation::Off => NanoUsd::ZERO,
        mode => estimate(mode).1,
    };
    let multiplier = provider.cost_multiplier;
    Some(EstimatedBatch { pending: PendingBatch { ask, reserved }, usage, cost, multiplier })
}

/// What the results of a batch cost.
pub(super) struct BatchCharge {
    pub usage: Usage,
    /// `None`: there is no price for some of them.
    pub cost: Option<NanoUsd>,
    /// One for each model.
    pub parts: Vec<Part>,
    pub estimated: bool,
    /// How many there are, for the decision chain.
    pub detail: String,
}

/// Bills a batch by its results, if it is not billed yet.
pub(super) fn batch_ended(
    gateway: &Gateway,
    (provider, batch): (ProviderId, &str),
    charge: BatchCharge,
) {
    let Some(mut pending) = gateway.pending_replies.take(provider, batch) else { return };
    let BatchCharge { usage, cost, parts, estimated, detail } = charge;
    let record = &mut pending.record;
    (record.usage, record.cost, record.price_model) = (usage, cost, None);
    (record.parts, record.estimated) = (parts, estimated);
    settle(gateway, pending, None, RequestOutcome::Completed, None, &detail);
}

/// Bills a reply by what was fetched of it, if it has ended and is not billed yet.
pub(super) fn fetched(
    gateway: &Gateway,
    (provider, reply): (ProviderId, &str),
    fetched: &UsageReader,
    by: SeenBy,
) {
    let is_it = fetched.reply_id() == Some(reply) && fetched.is_whole();
    if !is_it || fetched.state().is_none_or(ReplyState::goes_on) {
        return;
    }
    let Some(pending) = gateway.pending_replies.take(provider, reply) else { return };
    let input = pending.record.usage.total_input();
    let Some((state, bill)) = fetched.bill_of_fetched(input) else { return };
    let word: &str = state.into();
    let seen = match by {
        SeenBy::Client => "the client fetched it",
        SeenBy::Gateway => "the gateway fetched it",
    };
    let (outcome, error) = match state {
        ReplyState::Failed => (RequestOutcome::BrokenOff, Some("the provider failed to make it")),
        ReplyState::Cancelled => (RequestOutcome::ClientAborted, Some("it was cancelled")),
        _ => (RequestOutcome::Completed, None),
    };
    settle(
        gateway,
        pending,
        Some(bill),
        outcome,
        error,
        &format!("{word} in the background: {seen}"),
    );
}

/// Bills a reply whose end will not be seen, by the estimate.
pub(super) fn lost(gateway: &Gateway, (provider, reply): (ProviderId, &str), why: &str) {
    let Some(pending) = gateway.pending_replies.take(provider, reply) else { return };
    let key = pending.record.key_id.filter(|_| pending.batch.is_some());
    bill_estimate(gateway, pending, why);
    if let Some(key) = key {
        held::close(gateway, key, reply.to_owned());
    }
}

fn bill_estimate(gateway: &Gateway, pending: PendingReply, why: &str) {
    let id = pending.record.request_id;
    tracing::warn!(request_id = %id, why, "a reply in the background is billed by an estimate");
    settle(gateway, pending, None, RequestOutcome::BrokenOff, Some(why), why);
}

fn settle(
    gateway: &Gateway,
    mut pending: PendingReply,
    bill: Option<Bill>,
    outcome: RequestOutcome,
    error: Option<&str>,
    detail: &str,
) {
    let now = gateway.node.clock.now();
    let snapshot = gateway.node.state.snapshot();
    let mut record = pending.record.clone();
    if let Some(mut bill) = bill {
        let upstream = record.upstream_model.as_ref().unwrap_or(&record.model);
        let asked = (WireFormat::Responses, &**upstream);
        record::add_asked(&mut bill, &snapshot, asked, &pending.features);
        let names = [&*record.model, &**upstream];
        let (price, cost) = settle::charge(&snapshot, names, record.cost_multiplier, &mut bill);
        let other = price.filter(|price| *price.model != *record.model);
        record.price_model = other.map(|price| price.model.as_str().into());
        record.cost = cost;
        (record.usage, record.parts, record.estimated) = (bill.usage, bill.parts, bill.estimated);
    }
    let permit = pending.permit.take();
    if let Some(at) = permit.as_ref().and_then(|permit| permit.admitted()) {
        record.admitted_ms = at.since(record.started_at);
    }
    record.duration_ms = u64::try_from(now.since(record.started_at)).unwrap_or(record.duration_ms);
    (record.outcome, record.error_message) = (outcome, error.map(str::to_owned));
    record.decisions.push(decided(&record, detail));
    let provider = snapshot.provider(pending.provider);
    settle::conclude(gateway, &snapshot, permit, &record, provider.map(|p| &**p), None);
    gateway.pending_replies.forget(&pending);
    gateway.node.events.tell(|| NodeEvent::Request(Arc::new(record)));
}

fn decided(record: &Record, detail: &str) -> Decision {
    let step = match record.outcome {
        RequestOutcome::Completed => DecisionStep::Succeeded,
        _ => DecisionStep::AttemptFailed,
    };
    Decision {
        provider_id: record.provider_id,
        provider_name: record.provider_name.clone().unwrap_or_default(),
        step,
        detail: Some(detail.into()),
        status: Some(record.status_code),
        at_ms: record.duration_ms,
        took_ms: Some(record.duration_ms),
        usage: None,
    }
}
