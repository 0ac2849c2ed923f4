//! The limits: one atomic step over the thirteen checks, with the request's expected cost reserved while it runs.

use std::sync::Arc;

use super::exchange::{Caller, Exchange, Inbound};
use super::refusal::Refusal;
use super::render;
use crate::counters::{Admission, Asks, Refused};
use crate::domain::group::Groups;
use crate::domain::money::NanoUsd;
use crate::formats::count;
use crate::policy::reservation::{Forecast, Reservation};
use crate::policy::select::SelectAsk;

/// Takes the request's place among the limits. The admin token has none of its own; providers' limits see it all the same.
///
/// # Errors
/// The first limit that is reached; or that the journal is full, and nothing could be accounted for.
pub async fn admit(x: &mut Exchange) -> Result<(), Refusal> {
    if !x.gateway.ledger.has_room() {
        return Err(Refusal::JournalFull);
    }
    let (Some(caller), Some(inbound)) = (&x.caller, &x.inbound) else { return Ok(()) };
    let (session, estimate, started) = (&inbound.session, reservation(x, inbound), x.started_at);
    let permit = match caller {
        Caller::Admin => x.gateway.counters.bypass(x.request_id, session, estimate, started),
        Caller::Key { key, user } => {
            // The body may have taken long: the minute counts from now on, the cost belongs to the start.
            let now = x.now();
            let asks = &Asks { model: Arc::clone(&inbound.model), format: x.format };
            let admission = Admission { request: x.request_id, now, started, key, user, session, estimate, asks };
            x.gateway.counters.admit(&admission).await.map_err(|refused| match refused {
                Refused::Limit(denied) => Refusal::Limit(denied),
                Refused::Unreachable => Refusal::CountersUnreachable,
            })?
        }
    };
    x.permit = Some(permit);
    Ok(())
}

/// What the request reserves, by the dearest provider that it can reach (see `policy::reservation`).
fn reservation(x: &Exchange, inbound: &Inbound) -> NanoUsd {
    let mode = x.gateway.fixed.reservation;
    let (Some(snapshot), true) = (&x.snapshot, mode != Reservation::Off) else { return NanoUsd::ZERO };
    let no_groups = Groups::default();
    let (groups, key) = match &x.caller {
        Some(Caller::Key { key, .. }) => (&key.provider_group, Some(key.id)),
        _ => (&no_groups, None),
    };
    let ask = SelectAsk {
        groups,
        all_groups: matches!(x.caller, Some(Caller::Admin)),
        model: &inbound.model,
        format: x.format,
        convertible: render::convertible(x.operation()),
        preferred: None,
        now: x.started_at,
        at_ms: 0,
    };
    let (max_tokens, choices) = inbound.peek.output_bound(x.format);
    let forecast = Forecast {
        input: count::from_peek(&inbound.peek),
        input_bound: count::bound_from_peek(&inbound.peek),
        max_tokens,
        choices,
        usual_output: key.and_then(|key| x.gateway.counters.expected_output(key, &inbound.model)),
    };
    snapshot.reservation(mode, &ask, &forecast)
}
