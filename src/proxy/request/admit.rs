//! The limits: one atomic step over the thirteen checks. It reserves the request's expected cost
//! while the request is in flight.

use std::fmt::Write as _;
use std::sync::Arc;

use super::identify::Identified;
use super::intake::Inbound;
use super::select::Selected;
use crate::domain::ids::ProviderId;
use crate::domain::money::NanoUsd;
use crate::domain::record::{Decision, DecisionStep};
use crate::formats::route::Operation;
use crate::limits::{Admission, Asks, Refused};
use crate::policy::reservation::Reservation;
use crate::proxy::caller::Principal;
use crate::proxy::context::RequestContext;
use crate::proxy::reply::refusal::Refusal;

/// A request that passed the limits.
pub(in crate::proxy) struct Admitted {
    pub selected: Selected,
    /// The provider that served this session last, if the session is live.
    pub preferred: Option<ProviderId>,
}

/// Takes the request's place among the limits. Token counting takes none, nor does a request that
/// is only explained. The admin token has no
/// limits, but its requests count towards providers' limits.
///
/// # Errors
/// The first limit that is reached; or that the journal is full, so that the request could not be
/// recorded.
pub(in crate::proxy) async fn admit(
    ctx: &mut RequestContext,
    identified: &Identified,
    selected: Selected,
    operation: &Operation,
) -> Result<Admitted, Refusal> {
    let gateway = &ctx.gateway;
    // Reading the body may have taken long: the request counts from now on, with all that it costs.
    let now = ctx.now();
    identified.caller.usable(now)?;
    if !operation.is_metered() || ctx.is_explained {
        let preferred = selected.preferred;
        return Ok(Admitted { selected, preferred });
    }
    if !gateway.ledger.has_room() {
        return Err(Refusal::JournalFull);
    }
    let (counters, session, estimate) =
        (&gateway.node.counters, &selected.inbound.session, selected.estimate);
    let permit = match &identified.caller {
        Principal::Admin => counters.bypass(ctx.id, session, estimate, now),
        Principal::Key { key, user } => {
            let asks = &Asks { model: Arc::clone(&selected.inbound.model), format: ctx.format };
            let admission = Admission { request: ctx.id, now, key, user, session, estimate, asks };
            let first = selected.first(identified).filter(|_| counters.takes_places());
            counters.admit_to(&admission, first).await.map_err(|refused| match refused {
                Refused::Limit(denied) => Refusal::Limit(denied),
                Refused::Unreachable => Refusal::CountersUnreachable,
            })?
        }
    };
    let preferred = permit.session_provider();
    let assumed = assumed(ctx, identified, &selected.inbound, estimate);
    if let Some(record) = &mut ctx.record {
        record.permit = Some(permit);
        record.decisions.extend(assumed);
    }
    Ok(Admitted { selected, preferred })
}

/// Says in the decision chain what was reserved, for a request that may cost more than its own
/// model: one that names further models, or bounds the uses of tools.
fn assumed(
    ctx: &RequestContext,
    identified: &Identified,
    inbound: &Inbound,
    amount: NanoUsd,
) -> Option<Decision> {
    let uses = inbound.peek.tool_bounds.uses;
    let mode = ctx.gateway.fixed.reservation;
    if mode == Reservation::Off || (inbound.named.is_empty() && uses.is_none()) {
        return None;
    }
    let mut detail = format!("reserved {amount} USD ({}), with", mode.as_str());
    for named in &inbound.named {
        let _ = write!(detail, " {} {}", named.member, named.name);
        if named.is_providers_choice() {
            let dearest = identified.snapshot.dearest_relative(mode, &inbound.model);
            let rates = dearest.map_or("nothing", |price| &price.model);
            let _ = write!(detail, " (a model of the provider's choice: {rates})");
        }
        detail.push(',');
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
