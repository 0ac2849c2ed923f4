//! Selects the provider for a request and the failover order after it, with the reasons.
//!
//! 1. groups: the provider must be reachable by the key (none: 403)
//! 2. enabled, and the model supported (none: 404); its format the client's or convertible; the
//!    other models and the features of the request allowed, and a price if one is required (none:
//!    403)
//! 3. circuit, cooldown, spending limits and session cap admit it (none: 503)
//! 4. the session's own provider comes first, unless it failed the session's last request; then the
//!    lowest priority number; then the group's strategy (cost or speed), if it has one; then the
//!    client's own format; then a weighted draw without replacement; providers whose accounts are
//!    nearly used up come last
//!
//! Every provider leaves a decision that an operator can read. This runs for each request: reasons
//! are shared texts, and a string is built only for a provider that is unavailable.

mod chain;
mod filters;
mod input;
mod order;
mod reasons;
#[cfg(test)]
mod tests;

use std::sync::Arc;

#[cfg(test)]
pub(super) use tests::provider as test_provider;

pub use input::{
    Availability, NoProvider, OwnCredential, ProviderView, SOON_MS, SelectInput, Selection, Waiting,
};
pub use reasons::REASONS;

use crate::domain::provider::Provider;
use crate::domain::strategy::Strategy;
use chain::{Chain, FirstBy};
use filters::Stage;
use order::OrderedProvider;

/// With the strategy `fastest`, one request of so many goes by the draw, so that slow providers are
/// measured again.
const EXPLORED_OF: u32 = 20;

/// Whether a provider can serve a request at all, ignoring its circuit and limits.
pub fn could_serve(ask: &SelectInput<'_>, provider: &Provider) -> bool {
    provider.deleted_at.is_none() && filters::unable(ask, provider).is_none()
}

/// Orders the providers for one request.
///
/// # Errors
/// [`NoProvider`] with the status it stands for, and the decisions.
pub fn plan(
    ask: &SelectInput<'_>,
    providers: &[Arc<Provider>],
    view: &dyn ProviderView,
    rng: &mut fastrand::Rng,
) -> Result<Selection, NoProvider> {
    let mut chain = Chain::new(ask, providers.len());
    let explores = ask.strategy == Strategy::Fastest && rng.u32(0..EXPLORED_OF) == 0;
    let is_ranked = !ask.strategy.is_usual() && !explores;
    let mut candidates = Vec::with_capacity(providers.len());
    let mut furthest = None;
    let (mut soonest, mut waiting) = (None, None::<Waiting>);
    for (index, provider) in providers.iter().enumerate().filter(|(_, p)| p.deleted_at.is_none()) {
        let stage = filters::pass(ask, provider, view);
        furthest = furthest.max(Some(stage.rank()));
        if let Stage::Ready = stage {
            let rank = if is_ranked { view.rank(provider) } else { 0 };
            let mut one = OrderedProvider::new(index, provider, ask.format, rank);
            one.is_nearly_used_up = view.is_nearly_used_up(provider);
            candidates.push(one);
        } else {
            soonest = [soonest, stage.until()].into_iter().flatten().min();
            if stage.is_waiting() && provider.kind.format() == ask.format {
                let before = waiting.and_then(|waiting| waiting.soonest);
                let soonest = [before, stage.until()].into_iter().flatten().min();
                waiting = Some(Waiting { soonest });
            }
            chain.passed_over(provider, stage);
        }
    }
    let mut lacks_credential = false;
    for provider in ask.left_out.iter().filter(|p| p.deleted_at.is_none()) {
        let stage = filters::left_out(ask, provider, view);
        furthest = furthest.max(Some(stage.rank()));
        lacks_credential |= stage == Stage::NoCredential && provider.kind.format() == ask.format;
        chain.passed_over(provider, stage);
    }
    if candidates.is_empty() {
        let retry_after_ms = soonest.map(|until| until.since(ask.now).max(0).unsigned_abs());
        return Err(NoProvider::after(furthest, retry_after_ms, chain.finish()));
    }
    order::sort(&mut candidates, rng);
    order::last_of_its_rank(&mut candidates, providers, ask.avoided, is_ranked);
    let mut for_session = order::session_first(&mut candidates, providers, ask.preferred);
    order::nearly_used_up_last(&mut candidates);
    for_session &= candidates.first().map(|one| providers[one.index].id) == ask.preferred;
    chain.candidates(providers, &candidates, FirstBy { for_session, explores });
    Ok(Selection {
        ordered: candidates.iter().map(|c| c.index).collect(),
        decisions: chain.finish(),
        waiting,
        lacks_credential,
    })
}
