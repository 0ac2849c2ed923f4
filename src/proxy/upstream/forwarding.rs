//! A request that goes to a provider: the plan, and the current position in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::keepalive::KeepAlive;
use super::tally::AttemptTally;
use crate::domain::format::WireFormat;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::formats::embeddings;
use crate::formats::route::{Operation, Route};
use crate::proxy::context::RequestContext;
use crate::proxy::own_credential::OwnCredential;
use crate::proxy::request::identify::Identified;
use crate::proxy::request::intake::Inbound;
use crate::proxy::request::plan::Plan;
use crate::state::CredentialPlace;
use crate::upstream::ProviderCall;
use crate::upstream::origin::same_origin;

/// The state of the attempt loop.
pub struct Forwarding {
    pub identified: Identified,
    pub inbound: Arc<Inbound>,
    pub route: Route,
    /// Indices into the snapshot's providers, in the order in which they are tried.
    order: Vec<usize>,
    /// The place of the next provider in it.
    next: usize,
    /// The credentials that have failed this request, where a provider has several.
    pub tried: Vec<CredentialPlace>,
    /// The providers of those that failed for another reason than a 401.
    pub limited: Vec<ProviderId>,
    /// The provider that the client's own credential goes to.
    own_goes_to: Option<Arc<Provider>>,
    /// No further attempt begins after this.
    pub deadline: Option<Instant>,
    pub tally: AttemptTally,
    pub keepalive: KeepAlive,
    /// How long a provider may send nothing until another one is asked as well; `None` = never, or
    /// one was.
    hedge_after: Option<Duration>,
    /// Two attempts run: neither is repeated at its provider.
    pub is_hedged: bool,
}

/// When a second provider is asked. Not for a reply that its provider keeps, or makes in the
/// background: it would exist twice.
fn hedge_after(
    ctx: &RequestContext,
    identified: &Identified,
    inbound: &Inbound,
) -> Option<Duration> {
    let after = identified.caller.hedge_after(&identified.snapshot.settings)?;
    let peek = &inbound.peek;
    let is_kept = peek.is_in_background(ctx.format) || peek.leaves_history(ctx.format);
    (!is_kept).then_some(after)
}

impl Forwarding {
    /// Starts the loop at the first provider of the plan. The deadline is `retry.deadline` from
    /// now: how long a client takes to send its body is not the providers' time.
    pub fn begin(
        ctx: &RequestContext,
        identified: Identified,
        route: Route,
        plan: Plan,
    ) -> Box<Self> {
        let (now, deadline_ms) = (Instant::now(), ctx.live.retry.deadline_ms);
        let deadline = (deadline_ms > 0).then(|| now + Duration::from_millis(deadline_ms));
        let tally = AttemptTally::new(&plan);
        let Plan { inbound, order, .. } = plan;
        let stream = inbound.stream && route.operation == Operation::Generate;
        let keepalive = KeepAlive::begin(ctx, stream, now);
        let may_hedge = stream && order.len() > 1;
        let hedge_after = may_hedge.then(|| hedge_after(ctx, &identified, &inbound)).flatten();
        Box::new(Self {
            identified,
            inbound,
            route,
            order,
            next: 0,
            tried: Vec::new(),
            limited: Vec::new(),
            own_goes_to: None,
            deadline,
            tally,
            keepalive,
            hedge_after,
            is_hedged: false,
        })
    }

    /// A wait for the provider begins: another one is asked if it lasts too long.
    pub fn arm_hedge(&mut self, now: Instant) {
        if let Some(after) = self.hedge_after {
            self.keepalive.hedge_at = Some(now + after);
        }
    }

    /// The providers of the plan that have not been tried, with their places in it.
    pub(super) fn untried(&self) -> Vec<(usize, Arc<Provider>)> {
        let providers = &self.identified.snapshot.providers;
        let rest = self.order.iter().enumerate().skip(self.next);
        rest.filter_map(|(at, place)| Some((at, Arc::clone(providers.get(*place)?)))).collect()
    }

    /// Takes the provider at this place out of the plan: it is asked beside the current one.
    pub(super) fn take_out(&mut self, at: usize) -> usize {
        self.order.remove(at)
    }

    /// Puts a provider back that was taken out.
    pub(super) fn put_back(&mut self, at: usize, provider: usize) {
        self.order.insert(at, provider);
    }

    /// A second attempt begins. It is the only one of the request.
    pub(super) fn hedges(&mut self) {
        (self.hedge_after, self.is_hedged) = (None, true);
    }

    /// The call that implements the client's operation at a provider of this format.
    pub fn call<'a>(&'a self, format: WireFormat, model: &'a str) -> ProviderCall<'a> {
        match self.route.operation {
            Operation::Endpoint(endpoint) => {
                let path = embeddings::path(endpoint, format);
                ProviderCall::Endpoint { path, model }
            }
            Operation::Stored(ref call) => ProviderCall::Stored(call),
            Operation::Upload(ref call) => ProviderCall::Upload(&call.target),
            Operation::CountTokens => ProviderCall::CountTokens { model },
            _ => ProviderCall::Generate { model, stream: self.inbound.stream },
        }
    }

    /// Whether the reply may be about a batch or a file.
    pub fn is_about_held(&self) -> bool {
        match &self.route.operation {
            Operation::Endpoint(endpoint) => endpoint.is_held(),
            operation => matches!(operation, Operation::Stored(_) | Operation::Upload(_)),
        }
    }

    /// Whether a provider that takes the client's own credential may have it: no second host may.
    pub fn may_have_own(&self, provider: &Provider) -> bool {
        !provider.auth.is_clients()
            || self.own_goes_to.as_ref().is_none_or(|first| same_origin(&first.url, &provider.url))
    }

    /// The client's own credential, if the provider takes it. No other host gets it from now on.
    pub fn own_credential(&mut self, provider: &Arc<Provider>) -> Option<Arc<OwnCredential>> {
        if !provider.auth.is_clients() {
            return None;
        }
        self.own_goes_to.get_or_insert_with(|| Arc::clone(provider));
        self.identified.own.clone()
    }

    /// Whether another attempt may begin.
    pub fn has_time(&self) -> bool {
        self.deadline.is_none_or(|at| Instant::now() < at)
    }

    /// A provider's stream was alive for this long before its attempt failed: that is not the time
    /// to a first byte, which the deadline bounds.
    pub fn was_alive(&mut self, time: Duration) {
        self.deadline = self.deadline.map(|at| at + time);
    }

    /// The next provider of the plan.
    pub fn next_provider(&mut self) -> Option<Arc<Provider>> {
        let place = *self.order.get(self.next)?;
        let provider = self.identified.snapshot.providers.get(place).map(Arc::clone);
        self.next += 1;
        provider
    }

    /// How many providers of the plan have not been tried.
    pub const fn remaining(&self) -> usize {
        self.order.len().saturating_sub(self.next)
    }

    /// Drops the request's body: no further attempt is possible.
    pub fn release_body(&mut self) {
        // No other stage holds it by now; if one did, the body would be freed with the request.
        if let Some(inbound) = Arc::get_mut(&mut self.inbound) {
            inbound.release_body();
        }
    }
}
