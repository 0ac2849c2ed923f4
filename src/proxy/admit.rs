//! The limits: one atomic step over the thirteen checks, with the request's expected cost reserved
//! while it runs.

use std::sync::Arc;

use super::context::{Caller, RequestContext};
use super::identify::Identified;
use super::intake::Inbound;
use super::refusal::Refusal;
use super::screen::Screened;
use crate::counters::{Admission, Refused};
use crate::domain::ids::ProviderId;
use crate::domain::money::NanoUsd;
use crate::domain::usage::Usage;
use crate::formats::count;
use crate::formats::route::Operation;
use crate::policy::cost;

/// Output tokens that are expected before a key's first reply from a model is known.
const FIRST_GUESS: u64 = 512;

/// A request that may run.
pub struct Admitted {
    pub inbound: Arc<Inbound>,
    /// The provider that served this session last, if the session is live.
    pub preferred: Option<ProviderId>,
}

/// Takes the request's place among the limits. Token counting has none. The admin token has none of
/// its own; providers' limits count it all the same.
///
/// # Errors
/// The first limit that is reached, or that the journal is full and nothing could be accounted for.
pub async fn admit(
    ctx: &mut RequestContext,
    identified: &Identified,
    screened: Screened,
    operation: &Operation,
) -> Result<Admitted, Refusal> {
    let Screened(inbound) = screened;
    let gateway = &ctx.gateway;
    let (session, now) = (&inbound.session, ctx.started_at);
    if *operation != Operation::Generate {
        let preferred = match &identified.caller {
            Caller::Key { key, user } => gateway.counters.session_provider(user.id, key.id, session, now),
            Caller::Admin => None,
        };
        return Ok(Admitted { inbound, preferred });
    }
    if !gateway.ledger.has_room() {
        return Err(Refusal::JournalFull);
    }
    let estimate = expected_cost(ctx, identified, &inbound);
    let permit = match &identified.caller {
        Caller::Admin => gateway.counters.bypass(ctx.id, session, estimate, now),
        Caller::Key { key, user } => {
            let admission = Admission { request: ctx.id, now, key, user, session, estimate };
            gateway.counters.admit(&admission).await.map_err(|refused| match refused {
                Refused::Limit(denied) => Refusal::Limit(denied),
                Refused::Unreachable => Refusal::CountersUnreachable,
            })?
        }
    };
    let preferred = permit.session_provider();
    if let Some(record) = &mut ctx.record {
        record.permit = Some(permit);
    }
    Ok(Admitted { inbound, preferred })
}

/// Price × (the body's estimated input, this key's usual output for the model). Zero when unpriced
/// or switched off.
fn expected_cost(ctx: &RequestContext, identified: &Identified, inbound: &Inbound) -> NanoUsd {
    let price = identified.snapshot.price_for(&inbound.model, &inbound.model);
    let (Some(price), true) = (price, ctx.gateway.fixed.reserve) else { return NanoUsd::ZERO };
    let key = identified.caller.key_id();
    let usual = key.and_then(|key| ctx.gateway.counters.expected_output(key, &inbound.model)).unwrap_or(FIRST_GUESS);
    let usage = Usage {
        input: count::from_peek(&inbound.peek),
        output: inbound.peek.max_tokens.map_or(usual, |max| usual.min(max)),
        ..Usage::default()
    };
    cost::total(&price.rates, &usage, rust_decimal::Decimal::ONE)
}
