//! The end of a request: priced, given back to the counters, journalled, counted and logged. Once, and never refused.

use std::sync::Arc;

use super::exchange::{Caller, End, Exchange};
use crate::domain::ids::KeyId;
use crate::domain::money::NanoUsd;
use crate::domain::record::{Decision, DecisionStep, Record, RequestOutcome};
use crate::formats::route::Operation;
use crate::policy::cost;
use crate::state::Event;
use crate::telemetry;

/// Settles the request, if it was authenticated and is not settled yet.
///
/// Call it before the bytes that complete the reply go to the client. A journal that cannot take the record says so
/// loudly, and the request goes on; new ones are refused until there is room (`admit`).
pub fn settle(x: &mut Exchange, end: &End) {
    if std::mem::replace(&mut x.settled, true) {
        return;
    }
    let Some(caller) = x.caller.clone() else { return };
    last_decision(x, end);
    let record = record(x, &caller, end);
    if let Some(permit) = x.permit.take() {
        // A refused request, or one that nobody answered, is to count towards nothing: dropping its permit gives all back.
        match record.outcome {
            RequestOutcome::Refused => drop(permit),
            _ => permit.settle(x.now(), record.cost.unwrap_or_default(), record.provider_id),
        }
    }
    // What room there is belongs to those under way: what is refused for want of it must not take it from them.
    let refused = record.outcome == RequestOutcome::Refused;
    if refused && !x.gateway.ledger.has_room() {
        tracing::debug!(request_id = %record.request_id, "a refusal is not recorded: the journal is full");
    } else if let Err(e) = x.gateway.ledger.append(&record) {
        tracing::error!(request_id = %record.request_id, error = %e, "the journal did not take a record");
    }
    if let (RequestOutcome::Completed, Some(key), 1..) = (record.outcome, record.key_id, record.usage.output) {
        x.gateway.counters.learn_output(key, &record.model, record.usage.output);
    }
    x.gateway.metrics.request_done(&record);
    if x.gateway.fixed.access_log {
        telemetry::access_log(&record);
    }
    x.gateway.events.tell(|| Event::Request(Arc::new(record.clone())));
    x.decisions = record.decisions;
}

/// The end of the chain: who answered, how, and how long that took.
fn last_decision(x: &mut Exchange, end: &End) {
    let step = match end.outcome {
        RequestOutcome::Completed => DecisionStep::Succeeded,
        RequestOutcome::BrokenOff | RequestOutcome::ClientAborted => DecisionStep::AttemptFailed,
        _ => return,
    };
    let Some(asked) = &x.asked else { return };
    let decision = Decision {
        provider_id: Some(asked.provider.id),
        provider_name: asked.provider.name.as_str().into(),
        step,
        detail: end.error.as_deref().map(Arc::from),
        status: Some(end.status),
        at_ms: x.elapsed_ms(),
        took_ms: Some(u64::try_from(asked.began.elapsed().as_millis()).unwrap_or(u64::MAX)),
        usage: None,
    };
    x.decisions.push(decision);
}

fn record(x: &mut Exchange, caller: &Caller, end: &End) -> Record {
    let usage = x.usage.unwrap_or_default();
    let (cost, price_model, cost_multiplier) = price(x);
    let (key_id, key_name, user_id, user_name) = names(caller);
    let inbound = x.inbound.as_ref();
    let asked = x.asked.as_ref();
    let model: Arc<str> = inbound.map_or_else(|| Arc::from(""), |i| Arc::clone(&i.model));
    Record {
        request_id: x.request_id,
        started_at: x.started_at,
        key_id,
        key_name,
        user_id,
        user_name,
        session_id: inbound.map(|i| i.session.clone()),
        provider_id: asked.map(|a| a.provider.id),
        provider_name: asked.map(|a| a.provider.name.as_str().into()),
        client_format: x.format,
        provider_format: asked.map(|a| a.provider.kind.format()),
        endpoint: Arc::clone(&x.endpoint),
        upstream_model: asked.filter(|a| a.model != model).map(|a| Arc::clone(&a.model)),
        model,
        streamed: inbound.is_some_and(|i| i.stream),
        status_code: end.status,
        outcome: end.outcome,
        error_message: end.error.clone(),
        usage,
        cost,
        price_model,
        cost_multiplier,
        estimated: x.usage_estimated,
        duration_ms: x.elapsed_ms(),
        first_byte_ms: x.first_byte.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
        overhead_us: u64::try_from(x.started.elapsed().saturating_sub(x.waited).as_micros()).unwrap_or(u64::MAX),
        attempts: x.attempts,
        decisions: std::mem::take(&mut x.decisions),
        user_agent: x.user_agent.clone(),
        client_addr: x.client_ip.map(|ip| ip.to_string().into()),
    }
}

/// The cost, the price entry where it is not the model's own, and the multiplier it was made with. Nothing was used: it costs nothing. Something was used and the model has
/// no price: `None`, which the record shows as unpriced.
fn price(x: &Exchange) -> (Option<NanoUsd>, Option<Arc<str>>, rust_decimal::Decimal) {
    let one = rust_decimal::Decimal::ONE;
    let (Some(asked), Some(inbound), Some(usage)) = (&x.asked, &x.inbound, &x.usage) else {
        return (Some(NanoUsd::ZERO), None, one);
    };
    let multiplier = asked.provider.cost_multiplier;
    if x.operation() != Some(&Operation::Generate) {
        return (Some(NanoUsd::ZERO), None, multiplier);
    }
    let price = x.snapshot.as_ref().and_then(|s| s.price_for(&inbound.model, &asked.model));
    let entry = price.filter(|p| *p.model != *inbound.model).map(|p| p.model.as_str().into());
    (price.map(|p| cost::total(&p.rates, usage, multiplier)), entry, multiplier)
}

type Names = (Option<KeyId>, Option<Arc<str>>, Option<crate::domain::ids::UserId>, Option<Arc<str>>);

fn names(caller: &Caller) -> Names {
    match caller {
        Caller::Admin => (None, None, None, None),
        Caller::Key { key, user } => {
            (Some(key.id), Some(key.name.as_str().into()), Some(user.id), Some(user.name.as_str().into()))
        }
    }
}
