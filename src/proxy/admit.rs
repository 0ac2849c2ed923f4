//! The limits: one atomic step over the thirteen checks, with the request's expected cost reserved while it runs.

use super::exchange::{Caller, Exchange, Inbound};
use super::refusal::Refusal;
use crate::counters::Admission;
use crate::domain::money::NanoUsd;
use crate::domain::usage::Usage;
use crate::policy::cost;

/// Bytes of a request body per input token: a rough figure, for the reservation only.
const BYTES_PER_TOKEN: u64 = 4;

/// Takes the request's place among the limits. The admin token has none of its own; providers' limits see it all the same.
///
/// # Errors
/// The first limit that is reached; or that the journal is full, and nothing could be accounted for.
pub fn admit(x: &mut Exchange) -> Result<(), Refusal> {
    if !x.gateway.ledger.has_room() {
        return Err(Refusal::JournalFull);
    }
    let (Some(caller), Some(inbound)) = (&x.caller, &x.inbound) else { return Ok(()) };
    let (session, estimate, now) = (&inbound.session, expected_cost(x, inbound), x.started_at);
    let permit = match caller {
        Caller::Admin => x.gateway.counters.bypass(session, estimate, now),
        Caller::Key { key, user } => {
            let admission = Admission { now, key, user, session, estimate };
            x.gateway.counters.admit(&admission).map_err(Refusal::Limit)?
        }
    };
    x.permit = Some(permit);
    Ok(())
}

/// Price × (body size as input, this key's usual output for the model). Nothing when unpriced or switched off.
fn expected_cost(x: &Exchange, inbound: &Inbound) -> NanoUsd {
    let price = x.snapshot.as_ref().and_then(|s| s.price_for(&inbound.model, &inbound.model));
    let (Some(price), true) = (price, x.gateway.fixed.reserve) else { return NanoUsd::ZERO };
    let key = x.caller.as_ref().and_then(Caller::key_id);
    let usage = Usage {
        input: u64::try_from(inbound.body_len - inbound.peek.media_len).unwrap_or(u64::MAX) / BYTES_PER_TOKEN,
        output: x.gateway.expected.tokens(key, &inbound.model, inbound.peek.max_tokens),
        ..Usage::default()
    };
    cost::total(&price.rates, &usage, rust_decimal::Decimal::ONE)
}
