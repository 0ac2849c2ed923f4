//! Which providers may be asked, in which order, and why.

use super::exchange::{Caller, Exchange, Inbound};
use super::refusal::Refusal;
use super::render;
use crate::counters::Blocked;
use crate::domain::clock::Timestamp;
use crate::domain::group::Groups;
use crate::domain::ids::ProviderId;
use crate::policy::select::{self, Availability, NoProvider, ProviderView, SelectAsk};

/// Orders the providers for this request; the reasons become the head of its decision chain.
///
/// # Errors
/// 403 when no provider is in reach, 404 when none serves the model, 503 when none is available now.
pub async fn plan(x: &mut Exchange) -> Result<(), Refusal> {
    let (Some(snapshot), Some(inbound)) = (&x.snapshot, &x.inbound) else { return Err(Refusal::Internal) };
    // Reading the body may have taken long.
    let now = x.now();
    let everything = Groups::parse(crate::domain::group::ALL);
    let groups = match &x.caller {
        Some(Caller::Key { key, .. }) => &key.provider_group,
        _ => &everything,
    };
    let ask = SelectAsk {
        groups,
        all_groups: matches!(x.caller, Some(Caller::Admin)),
        model: &inbound.model,
        format: x.format,
        convertible: render::convertible(x.operation()),
        preferred: preferred(x, inbound),
        now,
        at_ms: x.elapsed_ms(),
    };
    let key = x.caller.as_ref().and_then(Caller::key_id);
    let blocked = x.gateway.counters.blocked(&snapshot.providers, key, &inbound.session, now).await;
    let view = View { x, blocked, now };
    match select::plan(&ask, &snapshot.providers, &view, &mut fastrand::Rng::new()) {
        Ok(selection) => {
            x.order = selection.ordered;
            x.decisions = selection.decisions;
            Ok(())
        }
        Err(none) => {
            let refusal = match &none {
                NoProvider::NotInReach { .. } => Refusal::NoGroup,
                NoProvider::ModelUnknown { .. } => Refusal::UnknownModel { model: inbound.model.to_string() },
                NoProvider::Unavailable { retry_after_ms, .. } => {
                    Refusal::Unavailable { retry_after_ms: *retry_after_ms }
                }
            };
            x.decisions = none.into_decisions();
            Err(refusal)
        }
    }
}

/// The provider that this conversation uses already.
fn preferred(x: &Exchange, inbound: &Inbound) -> Option<ProviderId> {
    if let Some(permit) = &x.permit {
        return permit.session_provider();
    }
    let Some(Caller::Key { key, user }) = &x.caller else { return None };
    x.gateway.counters.session_provider(user.id, key.id, &inbound.session, x.now())
}

/// What selection needs to know of each provider's present state.
struct View<'a> {
    x: &'a Exchange,
    /// By their limits.
    blocked: Vec<(ProviderId, Blocked)>,
    now: Timestamp,
}

impl ProviderView for View<'_> {
    fn availability(&self, id: ProviderId) -> Availability {
        let gateway = &self.x.gateway;
        match gateway.health.availability(id, self.now) {
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
