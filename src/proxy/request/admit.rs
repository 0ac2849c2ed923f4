//! The limits: one atomic step over the thirteen checks. It reserves the request's expected cost
//! while the request is in flight.

use std::fmt::Write as _;
use std::sync::Arc;

use super::identify::Identified;
use super::intake::Inbound;
use super::plan;
use super::screen::Screened;
use crate::domain::group::Groups;
use crate::domain::ids::ProviderId;
use crate::domain::money::NanoUsd;
use crate::domain::record::{Decision, DecisionStep};
use crate::formats::route::Operation;
use crate::formats::{convert, count};
use crate::limits::{Admission, Asks, Refused};
use crate::policy::reservation::{Forecast, Reservation};
use crate::policy::select::SelectInput;
use crate::proxy::context::{Principal, RequestContext};
use crate::proxy::reply::refusal::Refusal;

/// A request that passed the limits.
pub struct Admitted {
    pub inbound: Arc<Inbound>,
    /// The provider that served this session last, if the session is live.
    pub preferred: Option<ProviderId>,
}

/// Takes the request's place among the limits. Token counting has none. The admin token has no
/// limits, but its requests count towards providers' limits.
///
/// # Errors
/// The first limit that is reached; or that the journal is full, so that the request could not be
/// recorded.
pub(in crate::proxy) async fn admit(
    ctx: &mut RequestContext,
    identified: &Identified,
    screened: Screened,
    operation: &Operation,
) -> Result<Admitted, Refusal> {
    let Screened(inbound) = screened;
    let gateway = &ctx.gateway;
    // Reading the body may have taken long: the request counts from now on, with all that it costs.
    let (session, now) = (&inbound.session, ctx.now());
    identified.caller.usable(now)?;
    if *operation != Operation::Generate {
        let preferred = match &identified.caller {
            Principal::Key { key, user } => {
                gateway.counters.session_provider(user.id, key.id, session, now)
            }
            Principal::Admin => None,
        };
        return Ok(Admitted { inbound, preferred });
    }
    if !gateway.ledger.has_room() {
        return Err(Refusal::JournalFull);
    }
    let estimate = reservation(ctx, identified, &inbound, operation);
    let assumed = assumed(ctx, &inbound, estimate);
    let permit = match &identified.caller {
        Principal::Admin => gateway.counters.bypass(ctx.id, session, estimate, now),
        Principal::Key { key, user } => {
            let asks = &Asks { model: Arc::clone(&inbound.model), format: ctx.format };
            let admission = Admission { request: ctx.id, now, key, user, session, estimate, asks };
            let first = plan::first(ctx, identified, &inbound, operation);
            gateway.counters.admit_to(&admission, first).await.map_err(|refused| match refused {
                Refused::Limit(denied) => Refusal::Limit(denied),
                Refused::Unreachable => Refusal::CountersUnreachable,
            })?
        }
    };
    let preferred = permit.session_provider();
    if let Some(record) = &mut ctx.record {
        record.permit = Some(permit);
        record.decisions.extend(assumed);
    }
    Ok(Admitted { inbound, preferred })
}

/// Says in the decision chain what was reserved, for a request that may cost more than its own
/// model: one that names further models, or bounds the uses of tools.
fn assumed(ctx: &RequestContext, inbound: &Inbound, amount: NanoUsd) -> Option<Decision> {
    let uses = inbound.peek.tool_bounds.uses;
    let mode = ctx.gateway.fixed.reservation;
    if mode == Reservation::Off || (inbound.named.is_empty() && uses.is_none()) {
        return None;
    }
    let mut detail = format!("reserved {amount} USD ({}), with", mode.as_str());
    for named in &inbound.named {
        let _ = write!(detail, " {} {},", named.member, named.name);
    }
    match uses {
        Some(uses) => {
            let _ = write!(detail, " {uses} uses of a tool");
        }
        None => detail.truncate(detail.len() - 1),
    }
    Some(Decision {
        provider_id: None,
        provider_name: "(reservation)".into(),
        step: DecisionStep::Candidate,
        detail: Some(detail.into()),
        status: None,
        at_ms: ctx.elapsed_ms(),
        took_ms: None,
        usage: None,
    })
}

/// What the request reserves, at the price of the most expensive provider that it can reach (see
/// `policy::reservation`).
fn reservation(
    ctx: &RequestContext,
    identified: &Identified,
    inbound: &Inbound,
    operation: &Operation,
) -> NanoUsd {
    let mode = ctx.gateway.fixed.reservation;
    if mode == Reservation::Off {
        return NanoUsd::ZERO;
    }
    let no_groups = Groups::default();
    let (groups, key) = match &identified.caller {
        Principal::Key { key, .. } => (&key.provider_group, Some(key.id)),
        Principal::Admin => (&no_groups, None),
    };
    let ask = SelectInput {
        groups,
        all_groups: matches!(identified.caller, Principal::Admin),
        model: &inbound.model,
        named: &inbound.named,
        format: ctx.format,
        convertible: convert::convertible(operation),
        preferred: None,
        avoided: None,
        left_out: &[],
        now: ctx.now(),
        at_ms: 0,
    };
    let (max_tokens, choices) = inbound.peek.output_bound(ctx.format);
    let forecast = Forecast {
        input: count::from_peek(&inbound.peek),
        input_bound: count::bound_from_peek(&inbound.peek),
        max_tokens,
        choices,
        usual_output: key.and_then(|key| ctx.gateway.counters.expected_output(key, &inbound.model)),
        tool_tokens: inbound.peek.tool_bounds.tokens,
        is_fast: inbound.peek.is_fast,
    };
    let own = identified.snapshot.reservation(mode, &ask, &forecast);
    let uses = inbound.peek.tool_bounds.uses;
    identified.snapshot.reservation_beside(mode, &ask, &forecast, (own, uses))
}
