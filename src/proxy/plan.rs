//! Which providers may be asked, in which order, and why.

use super::exchange::{Caller, Exchange, Inbound};
use super::refusal::Refusal;
use super::render;
use crate::counters::Blocked;
use crate::domain::clock::Timestamp;
use crate::domain::group::Groups;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::formats::route::Operation;
use crate::policy::select::{self, Availability, NoProvider, ProviderView, SelectAsk};

/// Orders the providers for this request; the reasons become the head of its decision chain.
///
/// # Errors
/// 403 when no provider is in reach or none has a price that the request must have, 404 when none serves the model, 503 when none is available now.
pub async fn plan(x: &mut Exchange) -> Result<(), Refusal> {
    let (Some(snapshot), Some(inbound)) = (&x.snapshot, &x.inbound) else { return Err(Refusal::Internal) };
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
        now: x.started_at,
        at_ms: x.elapsed_ms(),
    };
    let key = x.caller.as_ref().and_then(Caller::key_id);
    let blocked = x.gateway.counters.blocked(&snapshot.providers, key, &inbound.session, x.started_at).await;
    let model = needs_price(x).then_some(&*inbound.model);
    let view = View { x, blocked, now: x.started_at, needs_price: model };
    match select::plan(&ask, &snapshot.providers, &view, &mut fastrand::Rng::new()) {
        Ok(selection) => {
            x.order = selection.ordered;
            x.decisions = selection.decisions;
            Ok(())
        }
        Err(none) => {
            let refusal = match &none {
                NoProvider::NotInReach { .. } => Refusal::NoGroup,
                NoProvider::Unpriced { .. } => Refusal::ModelNotPriced { model: inbound.model.to_string() },
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
    x.gateway.counters.session_provider(user.id, key.id, &inbound.session, x.started_at)
}

/// What selection needs to know of each provider's present state.
struct View<'a> {
    x: &'a Exchange,
    /// By their limits.
    blocked: Vec<(ProviderId, Blocked)>,
    now: Timestamp,
    /// The model that was asked for, where the request must have a price.
    needs_price: Option<&'a str>,
}

/// Whether this request is served only where its model has a price.
fn needs_price(x: &Exchange) -> bool {
    let is_limited = matches!(&x.caller, Some(Caller::Key { key, user })
        if key.limits.of_money() || user.limits.of_money());
    x.operation() == Some(&Operation::Generate) && !x.gateway.live.load().unpriced.serves(is_limited)
}

impl ProviderView for View<'_> {
    fn is_priced(&self, provider: &Provider) -> bool {
        let Some(model) = self.needs_price else { return true };
        self.x.snapshot.as_ref().is_some_and(|s| s.price_for(model, provider.upstream_model(model)).is_some())
    }

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
