//! The limits: one atomic step over the thirteen checks, with the request's expected cost reserved while it runs.

use super::exchange::{Caller, Exchange, Inbound};
use super::refusal::Refusal;
use crate::counters::{Admission, Refused};
use crate::domain::money::NanoUsd;
use crate::domain::usage::Usage;
use crate::formats::count;
use crate::policy::cost;

/// Output tokens that are expected before a key's first reply from a model is known.
const FIRST_GUESS: u64 = 512;

/// Takes the request's place among the limits. The admin token has none of its own; providers' limits see it all the same.
///
/// # Errors
/// The first limit that is reached; or that the journal is full, and nothing could be accounted for.
pub async fn admit(x: &mut Exchange) -> Result<(), Refusal> {
    if !x.gateway.ledger.has_room() {
        return Err(Refusal::JournalFull);
    }
    let (Some(caller), Some(inbound)) = (&x.caller, &x.inbound) else { return Ok(()) };
    let (session, estimate, now) = (&inbound.session, expected_cost(x, inbound), x.started_at);
    let permit = match caller {
        Caller::Admin => x.gateway.counters.bypass(x.request_id, session, estimate, now),
        Caller::Key { key, user } => {
            let admission = Admission { request: x.request_id, now, key, user, session, estimate };
            x.gateway.counters.admit(&admission).await.map_err(|refused| match refused {
                Refused::Limit(denied) => Refusal::Limit(denied),
                Refused::Unreachable => Refusal::CountersUnreachable,
            })?
        }
    };
    x.permit = Some(permit);
    Ok(())
}

/// Price × (the body's estimated input, this key's usual output for the model). Nothing when unpriced or switched off.
fn expected_cost(x: &Exchange, inbound: &Inbound) -> NanoUsd {
    let price = x.snapshot.as_ref().and_then(|s| s.price_for(&inbound.model, &inbound.model));
    let (Some(price), true) = (price, x.gateway.fixed.reserve) else { return NanoUsd::ZERO };
    let key = x.caller.as_ref().and_then(Caller::key_id);
    let usual = key.and_then(|key| x.gateway.counters.expected_output(key, &inbound.model)).unwrap_or(FIRST_GUESS);
    let usage = Usage {
        input: count::from_peek(&inbound.peek),
        output: inbound.peek.max_tokens.map_or(usual, |max| usual.min(max)),
        ..Usage::default()
    };
    cost::total(&price.rates, &usage, rust_decimal::Decimal::ONE)
}
