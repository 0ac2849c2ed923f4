//! Which providers may be tried, in which order, and why.

use std::sync::{Arc, LazyLock};

use super::admit::Admitted;
use super::identify::Identified;
use super::intake::Inbound;
use crate::domain::clock::Timestamp;
use crate::domain::group::{self, Groups};
use crate::domain::ids::{KeyId, ProviderId, SessionId};
use crate::domain::named_model::NamedModel;
use crate::domain::provider::Provider;
use crate::formats::convert;
use crate::formats::route::Operation;
use crate::limits::{Blocked, Permit};
use crate::policy::select::{
    self, Availability, NoProvider, ProviderView, SelectInput, Selection, Waiting,
};
use crate::proxy::context::{Principal, RequestContext};
use crate::proxy::reply::refusal::Refusal;
use crate::state::Snapshot;

/// The providers to ask.
pub struct Plan {
    /// Indices into the snapshot's providers, in the order in which they are tried.
    pub order: Vec<usize>,
    /// Others that could serve the request, but not now.
    pub waiting: Option<Waiting>,
    /// Another one that could serve the request lacks its credential.
    pub lacks_credential: bool,
}

/// Why there is no plan.
pub(in crate::proxy) enum Unplanned {
    NoGroup { exists: bool },
    NotPriced { model: String },
    UnknownModel { model: String },
    NoCredential,
    Unavailable { retry_after_ms: Option<u64> },
}

impl Unplanned {
    #[must_use]
    pub(in crate::proxy) fn into_refusal(self) -> Refusal {
        match self {
            Self::NoGroup { exists } => Refusal::NoGroup { exists },
            Self::NotPriced { model } => Refusal::ModelNotPriced { model },
            Self::UnknownModel { model } => Refusal::UnknownModel { model },
            Self::NoCredential => Refusal::NoProviderCredential,
            Self::Unavailable { retry_after_ms } => Refusal::Unavailable { retry_after_ms },
        }
    }
}

/// Orders the providers for this request. The reasons become the start of its decision chain.
///
/// # Errors
/// When no provider is reachable, none serves the model, none has a required price, or none is
/// available now.
pub(in crate::proxy) async fn plan(
    ctx: &mut RequestContext,
    identified: &Identified,
    admitted: &Admitted,
    operation: &Operation,
) -> Result<Plan, Unplanned> {
    let (snapshot, inbound) = (&identified.snapshot, &admitted.inbound);
    // Reading the body may have taken long.
    let (now, key) = (ctx.now(), identified.caller.key_id());
    let blocked = blocked(ctx, snapshot, (key, &inbound.session), now).await;
    let now = ctx.now();
    let asked = Asked { identified, inbound, operation };
    let (planned, decisions) = match ordered(ctx, &asked, admitted.preferred, (now, blocked)) {
        Ok(selection) => {
            let Selection { ordered: order, decisions, waiting, lacks_credential } = selection;
            (Ok(Plan { order, waiting, lacks_credential }), decisions)
        }
        Err(none) => {
            let unplanned = match &none {
                NoProvider::NotInReach { .. } => Unplanned::NoGroup {
                    exists: snapshot.providers.iter().any(|provider| provider.is_enabled),
                },
                NoProvider::Unpriced { .. } => {
                    let model = unpriced(snapshot, inbound).unwrap_or(&inbound.model);
                    Unplanned::NotPriced { model: model.to_owned() }
                }
                NoProvider::ModelUnknown { .. } => {
                    Unplanned::UnknownModel { model: unknown_model(snapshot, inbound) }
                }
                NoProvider::WithoutCredential { .. } => Unplanned::NoCredential,
                NoProvider::Unavailable { retry_after_ms, .. } => {
                    Unplanned::Unavailable { retry_after_ms: *retry_after_ms }
                }
            };
            (Err(unplanned), none.into_decisions())
        }
    };
    if let Some(record) = &mut ctx.record {
        record.decisions.extend(decisions);
    }
    planned
}

/// The model that no provider serves: another one that the request names, or its own.
fn unknown_model(snapshot: &Snapshot, inbound: &Inbound) -> String {
    let serves = |provider: &&Arc<Provider>| provider.supports_model(&inbound.model);
    let mut others = inbound.named.iter().filter(|named| {
        let mut serving = snapshot.providers.iter().filter(serves).peekable();
        serving.peek().is_some() && !serving.any(|provider| provider.allows_named(named))
    });
    others.next().map_or_else(|| inbound.model.to_string(), |named| named.name.clone())
}

/// The providers whose limits leave no room. One where the request has its place already has room:
/// the request's own reservation counts there.
async fn blocked(
    ctx: &RequestContext,
    snapshot: &Snapshot,
    (key, session): (Option<KeyId>, &SessionId),
    now: Timestamp,
) -> Vec<(ProviderId, Blocked)> {
    let counters = &ctx.gateway.counters;
    let permit = ctx.record.as_ref().and_then(|record| record.permit.as_ref());
    let Some(own) = permit.and_then(Permit::provider) else {
        return counters.blocked(&snapshot.providers, key, session, now).await;
    };
    let others: Vec<_> = snapshot.providers.iter().filter(|p| p.id != own).cloned().collect();
    counters.blocked(&others, key, session, now).await
}

/// The provider that [`plan`] will probably put first, by what this node knows before the request
/// is admitted. The same draw decides: it is another one only if something changed meanwhile, or
/// other nodes know more of the session.
pub(in crate::proxy) fn first<'a>(
    ctx: &RequestContext,
    identified: &'a Identified,
    inbound: &Inbound,
    operation: &Operation,
) -> Option<&'a Provider> {
    let Principal::Key { key, user } = &identified.caller else { return None };
    let (counters, providers) = (&ctx.gateway.counters, &identified.snapshot.providers);
    if !counters.takes_places() {
        return None;
    }
    let (now, session) = (ctx.now(), &inbound.session);
    let preferred = counters.session_provider(user.id, key.id, session, now);
    let blocked = counters.blocked_here(providers, Some(key.id), session, now);
    let asked = Asked { identified, inbound, operation };
    let selection = ordered(ctx, &asked, preferred, (now, blocked)).ok()?;
    selection.ordered.first().and_then(|first| providers.get(*first)).map(|first| &**first)
}

/// The groups of the admin token.
static EVERY_GROUP: LazyLock<Groups> = LazyLock::new(|| Groups::parse(group::ALL));

/// What is planned for.
struct Asked<'a> {
    identified: &'a Identified,
    inbound: &'a Inbound,
    operation: &'a Operation,
}

/// Orders the providers. The request's id is the seed of the draw among equals, so that a repeated
/// plan is the same.
fn ordered(
    ctx: &RequestContext,
    asked: &Asked<'_>,
    preferred: Option<ProviderId>,
    (now, blocked): (Timestamp, Vec<(ProviderId, Blocked)>),
) -> Result<Selection, NoProvider> {
    let Asked { identified, inbound, operation } = *asked;
    // Only the provider that the session is bound to: if it is another one now, that one answered
    // or was asked later.
    let failed = identified
        .caller
        .key_id()
        .and_then(|key| ctx.gateway.failed_sessions.provider(key, &inbound.session, ctx.now()));
    let avoided = preferred.filter(|bound| failed == Some(*bound));
    let groups = match &identified.caller {
        Principal::Key { key, .. } => &key.provider_group,
        Principal::Admin => &EVERY_GROUP,
    };
    let ask = SelectInput {
        groups,
        all_groups: matches!(identified.caller, Principal::Admin),
        model: &inbound.model,
        named: &inbound.named,
        format: ctx.format,
        convertible: convert::convertible(operation),
        preferred: preferred.filter(|_| avoided.is_none()),
        avoided,
        left_out: &identified.snapshot.left_out,
        now,
        at_ms: ctx.elapsed_ms(),
    };
    let needs_price = needs_price(ctx, identified, operation).then_some(&*inbound.model);
    let is_refused = needs_price.is_some() && unpriced(&identified.snapshot, inbound).is_some();
    let view = View { ctx, identified, blocked, now, needs_price, is_refused };
    let mut draw = fastrand::Rng::with_seed(ctx.id.0.as_u64_pair().1);
    select::plan(&ask, &identified.snapshot.providers, &view, &mut draw)
}

/// The first model without a price that the request names beside its own.
fn unpriced<'a>(snapshot: &Snapshot, inbound: &'a Inbound) -> Option<&'a str> {
    let mut others = inbound.named.iter().filter(|named| !named.is_providers_choice());
    let is_unpriced = |named: &&NamedModel| snapshot.price_for(&named.name, &named.name).is_none();
    others.find(is_unpriced).map(|named| &*named.name)
}

/// Whether this request is served only by providers with a price for its model.
fn needs_price(ctx: &RequestContext, identified: &Identified, operation: &Operation) -> bool {
    let is_limited = matches!(&identified.caller, Principal::Key { key, user }
        if key.limits.of_money() || user.limits.of_money());
    *operation == Operation::Generate && !ctx.live.unpriced.serves(is_limited)
}

/// The present state of each provider, as selection needs it.
struct View<'a> {
    ctx: &'a RequestContext,
    identified: &'a Identified,
    /// Providers whose own limits are reached.
    blocked: Vec<(ProviderId, Blocked)>,
    now: Timestamp,
    /// The requested model, if it must have a price.
    needs_price: Option<&'a str>,
    /// Another model that the request names has no price, and must have one.
    is_refused: bool,
}

impl ProviderView for View<'_> {
    fn is_priced(&self, provider: &Provider) -> bool {
        let Some(model) = self.needs_price else { return true };
        !self.is_refused
            && self.identified.snapshot.price_for(model, provider.upstream_model(model)).is_some()
    }

    fn availability(&self, provider: &Provider) -> Availability {
        match self.ctx.gateway.health.availability(provider, self.now) {
            Availability::Ready => {}
            blocked => return blocked,
        }
        match self.blocked.iter().find(|(blocked, _)| *blocked == provider.id) {
            Some((_, Blocked::Limit { until })) => Availability::LimitReached { until: *until },
            Some((_, Blocked::SessionCap { until })) => Availability::SessionCap { until: *until },
            None => Availability::Ready,
        }
    }
}
