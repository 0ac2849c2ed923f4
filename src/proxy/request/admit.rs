//! The limits: one atomic step over the thirteen checks. It reserves the request's expected cost
//! while the request is in flight.

use std::sync::Arc;

use super::identify::Identified;
use super::select::Selected;
use crate::domain::ids::ProviderId;
use crate::formats::route::Operation;
use crate::limits::{Admission, Asks, Refused};
use crate::proxy::caller::Principal;
use crate::proxy::context::RequestContext;
use crate::proxy::reply::refusal::Refusal;

/// A request that passed the limits.
pub(in crate::proxy) struct Admitted {
    pub selected: Selected,
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
    selected: Selected,
    operation: &Operation,
) -> Result<Admitted, Refusal> {
    let gateway = &ctx.gateway;
    // Reading the body may have taken long: the request counts from now on, with all that it costs.
    let now = ctx.now();
    identified.caller.usable(now)?;
    if *operation != Operation::Generate {
        let preferred = selected.preferred;
        return Ok(Admitted { selected, preferred });
    }
    if !gateway.ledger.has_room() {
        return Err(Refusal::JournalFull);
    }
    let (counters, session, estimate) =
        (&gateway.counters, &selected.inbound.session, selected.estimate);
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
    if let Some(record) = &mut ctx.record {
        record.permit = Some(permit);
    }
    Ok(Admitted { selected, preferred })
}
