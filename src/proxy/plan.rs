//! Which providers may be asked, in which order, and why.

use super::admit::Admitted;
use super::context::{Caller, RequestContext};
use super::identify::Identified;
use super::refusal::Refusal;
use super::render;
use crate::counters::Blocked;
use crate::domain::clock::Timestamp;
use crate::domain::group::Groups;
use crate::domain::ids::ProviderId;
use crate::formats::route::Operation;
use crate::policy::select::{self, Availability, NoProvider, ProviderView, SelectAsk};

/// Indices into the snapshot's providers, in the order in which they are to be asked.
pub struct Plan(pub Vec<usize>);

/// Why there is no plan.
pub enum Unplanned {
    NoGroup,
    UnknownModel,
    Unavailable { retry_after_ms: Option<u64> },
}

impl Unplanned {
    #[must_use]
    pub fn into_refusal(self, admitted: &Admitted) -> Refusal {
        match self {
            Self::NoGroup => Refusal::NoGroup,
            Self::UnknownModel => Refusal::UnknownModel { model: admitted.inbound.model.to_string() },
            Self::Unavailable { retry_after_ms } => Refusal::Unavailable { retry_after_ms },
        }
    }
}

/// Orders the providers for this request; the reasons become the head of its decision chain.
///
/// # Errors
/// When no provider is in reach, none serves the model, or none is available now.
pub async fn plan(
    ctx: &mut RequestContext,
    identified: &Identified,
    admitted: &Admitted,
    operation: &Operation,
) -> Result<Plan, Unplanned> {
    let (snapshot, inbound) = (&identified.snapshot, &admitted.inbound);
    let everything = Groups::parse(crate::domain::group::ALL);
    let groups = match &identified.caller {
        Caller::Key { key, .. } => &key.provider_group,
        Caller::Admin => &everything,
    };
    let ask = SelectAsk {
        groups,
        all_groups: matches!(identified.caller, Caller::Admin),
        model: &inbound.model,
        format: ctx.format,
        convertible: render::convertible(operation),
        preferred: admitted.preferred,
        now: ctx.started_at,
        at_ms: ctx.elapsed_ms(),
    };
    let (key, now) = (identified.caller.key_id(), ctx.started_at);
    let blocked = ctx.gateway.counters.blocked(&snapshot.providers, key, &inbound.session, now).await;
    let view = View { ctx, blocked, now };
    let (planned, decisions) = match select::plan(&ask, &snapshot.providers, &view, &mut fastrand::Rng::new()) {
        Ok(selection) => (Ok(Plan(selection.ordered)), selection.decisions),
        Err(none) => {
            let unplanned = match &none {
                NoProvider::NotInReach { .. } => Unplanned::NoGroup,
                NoProvider::ModelUnknown { .. } => Unplanned::UnknownModel,
                NoProvider::Unavailable { retry_after_ms, .. } => {
                    Unplanned::Unavailable { retry_after_ms: *retry_after_ms }
                }
            };
            (Err(unplanned), none.into_decisions())
        }
    };
    if let Some(record) = &mut ctx.record {
        record.decisions = decisions;
    }
    planned
}

/// What selection needs to know of each provider's present state.
struct View<'a> {
    ctx: &'a RequestContext,
    /// Providers whose own limits leave no room.
    blocked: Vec<(ProviderId, Blocked)>,
    now: Timestamp,
}

impl ProviderView for View<'_> {
    fn availability(&self, id: ProviderId) -> Availability {
        match self.ctx.gateway.health.availability(id, self.now) {
            Availability::Ready => {}
            blocked => return blocked,
        }
        match self.blocked.iter().find(|(blocked, _)| *blocked == id) {
            Some((_, Blocked::Limit)) => Availability::LimitReached,
            Some((_, Blocked::SessionCap)) => Availability::SessionCap,
            None => Availability::Ready,
        }
    }
}
