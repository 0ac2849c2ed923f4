//! Which providers could serve a request, in which order, and what it reserves: by what this node
//! knows before the request is admitted.

use std::sync::{Arc, LazyLock};

use super::identify::Identified;
use super::intake::Inbound;
use super::screen::Screened;
use crate::domain::clock::Timestamp;
use crate::domain::endpoint::ApiEndpoint;
use crate::domain::feature::Feature;
use crate::domain::feature_policy::{FeatureUse, Unpriced};
use crate::domain::fee::Fee;
use crate::domain::format::WireFormat;
use crate::domain::group::{self, Groups};
use crate::domain::ids::ProviderId;
use crate::domain::money::NanoUsd;
use crate::domain::named_model::NamedModel;
use crate::domain::provider::Provider;
use crate::domain::strategy::Strategy;
use crate::formats::route::Operation;
use crate::formats::{convert, count};
use crate::limits::{Blocked, Permit};
use crate::policy::bill;
use crate::policy::reservation::{Forecast, Reservation};
use crate::policy::select::{
    self, Availability, NoProvider, OwnCredential, ProviderView, SelectInput, Selection,
};
use crate::proxy::caller::Principal;
use crate::proxy::context::RequestContext;
use crate::state::Snapshot;

/// A request with its providers.
pub(in crate::proxy) struct Selected {
    pub inbound: Arc<Inbound>,
    /// What the request reserves, at the price of the most expensive provider that it can reach
    /// (see `policy::reservation`).
    pub estimate: NanoUsd,
    /// The provider that served this session last, if the session is live.
    pub preferred: Option<ProviderId>,
    /// The provider that stores the history which the request continues: the one that gave the
    /// reply which it names, or else, as a guess, the session's.
    pub holder: Option<ProviderId>,
    /// It is not a guess.
    pub is_holder_known: bool,
    /// The providers whose limits leave no room.
    blocked: Vec<(ProviderId, Blocked)>,
    pub chosen: Result<Selection, NoProvider>,
}

impl Selected {
    /// The provider that will probably be asked first.
    pub(super) fn first<'a>(&self, identified: &'a Identified) -> Option<&'a Provider> {
        let first = *self.chosen.as_ref().ok()?.ordered.first()?;
        identified.snapshot.providers.get(first).map(|first| &**first)
    }

    /// Selects again if the request's admission changed what the selection was made from: the
    /// session is served by `preferred`, and with shared counters other nodes know more of the
    /// providers' limits.
    pub(super) async fn confirm(
        &mut self,
        ctx: &RequestContext,
        identified: &Identified,
        operation: &Operation,
        preferred: Option<ProviderId>,
    ) {
        let asked = ToSelect { ctx, identified, inbound: &self.inbound, operation };
        let preferred = self.holder.or(preferred);
        let mut is_same = preferred == self.preferred;
        if ctx.gateway.node.counters.takes_places() {
            let blocked = asked.blocked_anywhere().await;
            is_same &= blocked == self.blocked;
            self.blocked = blocked;
        }
        if !is_same {
            self.chosen = asked.order(&asked.input(preferred, ctx.now()), &self.blocked);
            self.preferred = preferred;
        }
    }
}

/// Selects the providers of a request.
pub(in crate::proxy) fn select(
    ctx: &RequestContext,
    identified: &Identified,
    screened: Screened,
    operation: &Operation,
) -> Selected {
    let Screened(inbound) = screened;
    let (counters, session) = (&ctx.gateway.node.counters, &inbound.session);
    // Reading the body may have taken long.
    let now = ctx.now();
    let preferred = match &identified.caller {
        Principal::Key { key, user } => counters.session_provider(user.id, key.id, session, now),
        Principal::Admin => None,
    };
    let (providers, key) = (&identified.snapshot.providers, identified.caller.key_id());
    let continued = inbound.peek.continued(ctx.format);
    let known = key.zip(continued);
    let known = known.and_then(|(key, reply)| ctx.gateway.stored_history.provider(key, reply));
    let known = inbound.account.map(|(provider, _)| provider).or(known);
    let holder = known.or(preferred.filter(|_| continued.is_some()));
    let is_holder_known = known.is_some();
    // Also if its last request failed there.
    let preferred = holder.or(preferred);
    let blocked = counters.blocked_here(providers, key, session, now);
    let asked = ToSelect { ctx, identified, inbound: &inbound, operation };
    let ask = asked.input(preferred, now);
    let (estimate, chosen) = (asked.reservation(&ask), asked.order(&ask, &blocked));
    Selected { inbound, estimate, preferred, holder, is_holder_known, blocked, chosen }
}

/// The groups of the admin token.
static EVERY_GROUP: LazyLock<Groups> = LazyLock::new(|| Groups::parse(group::ALL));

/// What providers are selected for.
#[derive(Clone, Copy)]
struct ToSelect<'a> {
    ctx: &'a RequestContext,
    identified: &'a Identified,
    inbound: &'a Inbound,
    operation: &'a Operation,
}

impl<'a> ToSelect<'a> {
    /// What the selection needs to know of the request. `preferred`: the session's provider.
    fn input(self, preferred: Option<ProviderId>, now: Timestamp) -> SelectInput<'a> {
        let Self { ctx, identified, inbound, operation } = self;
        // Only the provider that the session is bound to: if it is another one now, that one
        // answered or was asked later.
        let sessions = &ctx.gateway.failed_sessions;
        let failed = (identified.caller.key_id())
            .and_then(|key| sessions.provider(key, &inbound.session, now));
        let avoided = preferred.filter(|bound| failed == Some(*bound));
        SelectInput {
            groups: match &identified.caller {
                Principal::Key { key, .. } => &key.provider_group,
                Principal::Admin => &EVERY_GROUP,
            },
            all_groups: matches!(identified.caller, Principal::Admin),
            model: &inbound.model,
            named: &inbound.named,
            features: &inbound.features,
            format: ctx.format,
            convertible: convert::convertible(operation),
            strategy: identified.caller.strategy(&identified.snapshot.settings),
            preferred: preferred.filter(|_| avoided.is_none()),
            avoided,
            own_credential: self.own_credential(),
            left_out: &identified.snapshot.left_out,
            now,
            at_ms: ctx.elapsed_ms(),
        }
    }

    /// Whether a provider that takes the client's own credential can have it. A reply that is made
    /// in the background, and what is held for the client, is asked for later.
    fn own_credential(self) -> OwnCredential {
        let Self { identified, inbound, operation, .. } = self;
        if identified.own.is_none() {
            return OwnCredential::Missing;
        }
        let is_held = operation.endpoint().is_some_and(ApiEndpoint::is_held);
        match is_held || inbound.features.iter().any(|used| used.feature == Feature::Background) {
            true => OwnCredential::NeededLater,
            false => OwnCredential::Carried,
        }
    }

    /// Orders the providers. The request's id is the seed of the draw among equals, so that a
    /// repeated selection is the same.
    fn order(
        self,
        ask: &SelectInput<'_>,
        blocked: &[(ProviderId, Blocked)],
    ) -> Result<Selection, NoProvider> {
        let Self { ctx, identified, inbound, .. } = self;
        let is_billed = self.operation.is_metered();
        let is_limited = identified.caller.has_money_limit();
        let needs_price = is_billed && !ctx.live.unpriced.serves(is_limited);
        let is_refused = needs_price && unpriced(&identified.snapshot, inbound).is_some();
        let billed = is_billed.then_some(inbound);
        let view = View { asked: self, ask, blocked, billed, needs_price, is_refused };
        let mut draw = fastrand::Rng::with_seed(ctx.id.0.as_u64_pair().1);
        select::plan(ask, &identified.snapshot.providers, &view, &mut draw)
    }

    /// What the request reserves. Token counting reserves nothing.
    fn reservation(self, ask: &SelectInput<'_>) -> NanoUsd {
        let Self { ctx, identified, inbound, operation } = self;
        let mode = ctx.gateway.fixed.reservation;
        if mode == Reservation::Off || !operation.is_metered() {
            return NanoUsd::ZERO;
        }
        if let Some(batch) = inbound.ask.as_ref().and_then(|ask| ask.batch.as_ref()) {
            let usual = |model: &str| {
                let key = identified.caller.key_id()?;
                ctx.gateway.node.counters.expected_output(key, model)
            };
            return identified.snapshot.reservation_of_batch(mode, ask, batch, usual);
        }
        let forecast = self.forecast();
        let (snapshot, uses) = (&identified.snapshot, inbound.peek.tool_bounds.uses);
        if let Some(asked) = inbound.ask.as_ref().filter(|asked| asked.endpoint.has_units()) {
            return snapshot.reservation_of_units(mode, ask, &forecast, asked);
        }
        let own = snapshot.reservation(mode, ask, &forecast);
        snapshot.reservation_beside(mode, ask, &forecast, own, uses)
    }

    /// What is known of the request's cost before it is sent.
    fn forecast(self) -> Forecast {
        let Self { ctx, identified, inbound, .. } = self;
        let (max_tokens, choices) = inbound.peek.output_bound(ctx.format);
        let choices = inbound.ask.as_ref().map_or(choices, |ask| choices.max(ask.answers));
        let counters = &ctx.gateway.node.counters;
        Forecast {
            input: count::from_peek(&inbound.peek),
            input_bound: count::bound_from_peek(&inbound.peek),
            max_tokens,
            choices,
            usual_output: (identified.caller.key_id())
                .and_then(|key| counters.expected_output(key, &inbound.model)),
            tool_tokens: inbound.peek.tool_bounds.tokens,
            is_fast: inbound.peek.is_fast,
        }
    }

    /// The providers whose limits leave no room, by shared counters. One where the request has its
    /// place already has room: the request's own reservation counts there.
    async fn blocked_anywhere(self) -> Vec<(ProviderId, Blocked)> {
        let Self { ctx, identified, inbound, .. } = self;
        let (counters, key, now) =
            (&ctx.gateway.node.counters, identified.caller.key_id(), ctx.now());
        let (providers, session) = (&identified.snapshot.providers, &inbound.session);
        let permit = ctx.record.as_ref().and_then(|record| record.permit.as_ref());
        let Some(own) = permit.and_then(Permit::provider) else {
            return counters.blocked(providers, key, session, now).await;
        };
        let others: Vec<_> = providers.iter().filter(|p| p.id != own).cloned().collect();
        counters.blocked(&others, key, session, now).await
    }
}

/// The first model without a price that the request names beside its own.
pub(super) fn unpriced<'a>(snapshot: &Snapshot, inbound: &'a Inbound) -> Option<&'a str> {
    let mut others = inbound.named.iter().filter(|named| !named.is_providers_choice());
    let is_unpriced = |named: &&NamedModel| snapshot.price_for(&named.name, &named.name).is_none();
    others.find(is_unpriced).map(|named| &*named.name)
}

/// The first tool of a request that needs a price and has none at this provider, if the provider is
/// asked for it. `format`: the client's.
pub(super) fn unpriced_tool<'i>(
    snapshot: &Snapshot,
    inbound: &'i Inbound,
    provider: &Provider,
    format: WireFormat,
) -> Option<&'i FeatureUse> {
    let is_converted = provider.kind.format() != format;
    let needs_price = |used: &FeatureUse| {
        let denied = || provider.features.unpriced(used.feature) == Some(Unpriced::Refused);
        used.needs_price || (used.fee != Fee::Free && denied())
    };
    let find = |name: &str| snapshot.price_for(name, name).map(AsRef::as_ref);
    let is_priced = |used: &FeatureUse| {
        let mut models = inbound.named.iter().filter(|named| named.member == NamedModel::TOOLS);
        if used.fee == Fee::Images && models.clone().next().is_some() {
            return models.all(|named| find(&named.name).is_some());
        }
        let (model, upstream) = (&*inbound.model, provider.upstream_model(&inbound.model));
        bill::is_priced(used.fee, snapshot.price_for(model, upstream).map(AsRef::as_ref), find)
    };
    inbound.features.iter().find(|used| {
        (!is_converted || used.feature.row().is_converted) && needs_price(used) && !is_priced(used)
    })
}

/// The present state of each provider, as selection needs it.
struct View<'a> {
    asked: ToSelect<'a>,
    ask: &'a SelectInput<'a>,
    /// Providers whose own limits are reached.
    blocked: &'a [(ProviderId, Blocked)],
    /// The request, if it costs anything.
    billed: Option<&'a Inbound>,
    /// Its model must have a price.
    needs_price: bool,
    /// Another model that the request names has no price, and must have one.
    is_refused: bool,
}

impl ProviderView for View<'_> {
    fn is_priced(&self, provider: &Provider) -> bool {
        let Some(inbound) = self.billed else { return true };
        let (snapshot, model) = (&self.asked.identified.snapshot, &inbound.model);
        let has_price = || snapshot.price_for(model, provider.upstream_model(model)).is_some();
        if provider.auth.is_clients() {
            // It costs nothing here.
            return true;
        }
        (!self.needs_price || (!self.is_refused && has_price()))
            && unpriced_tool(snapshot, inbound, provider, self.asked.ctx.format).is_none()
    }

    fn rank(&self, provider: &Provider) -> u64 {
        let ToSelect { ctx, identified, inbound, .. } = self.asked;
        match self.ask.strategy {
            Strategy::Weighted => 0,
            // What is charged by units is not compared.
            Strategy::Cheapest if inbound.ask.is_some() => 0,
            Strategy::Cheapest => {
                let forecast = self.asked.forecast();
                identified.snapshot.expected_cost(&inbound.model, provider, &forecast)
            }
            Strategy::Fastest => {
                ctx.gateway.first_bytes.rank(provider.id, &inbound.model, inbound.stream)
            }
        }
    }

    fn is_nearly_used_up(&self, provider: &Provider) -> bool {
        self.asked.ctx.gateway.node.credentials.is_nearly_used_up(provider, self.ask.now)
    }

    fn availability(&self, provider: &Provider) -> Availability {
        match self.asked.ctx.gateway.node.health.availability(provider, self.ask.now) {
            Availability::Ready => {}
            blocked => return blocked,
        }
        if !provider.variants.is_empty() {
            match self.asked.ctx.gateway.node.credentials.availability(provider, self.ask.now) {
                Availability::Ready => {}
                blocked => return blocked,
            }
        }
        match self.blocked.iter().find(|(blocked, _)| *blocked == provider.id) {
            Some((_, Blocked::Limit { until })) => Availability::LimitReached { until: *until },
            Some((_, Blocked::SessionCap { until })) => Availability::SessionCap { until: *until },
            None => Availability::Ready,
        }
    }
}
