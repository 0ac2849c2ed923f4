//! The permit of one request, which counts until it is settled or dropped.

use super::backend::CounterBackend;
use super::charge::{Charge, CountedRequest, Settlement};
use super::standing::Standing;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{ProviderId, RequestId};
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;

/// The permit of one request. [`Permit::settle`] it at the end. A permit that is dropped instead
/// takes everything back: the reservation, the place of its session, the request of the minute.
#[must_use = "dropping a permit gives it back"]
pub struct Permit {
    backend: CounterBackend,
    /// `None` once settled.
    charge: Option<Charge>,
    at: Option<ProviderId>,
    served_before: Option<ProviderId>,
    standing: Standing,
}

impl Permit {
    pub(super) fn new(backend: CounterBackend, counted: CountedRequest) -> Self {
        let CountedRequest { charge, served_before, standing, at } = counted;
        Self { backend, charge: Some(charge), at, served_before, standing }
    }

    /// The remaining amounts of the caller's limits when the request was admitted.
    pub const fn standing(&self) -> &Standing {
        &self.standing
    }

    /// A time of this node by the clock of the caller's limits, and so of [`Self::standing`].
    pub fn time(&self, own: Timestamp) -> Timestamp {
        let time = self.backend.time(own);
        // What this node knows of Redis' clock may be some milliseconds behind.
        self.admitted().map_or(time, |admitted| time.max(admitted))
    }

    /// When the request was admitted, by the clock of the caller's limits. It counts in the windows
    /// that contain this time. `None` once settled.
    pub fn admitted(&self) -> Option<Timestamp> {
        self.charge.as_ref().map(|charge| charge.admitted)
    }

    /// The provider that last served this session, if it was live when the request was admitted.
    pub const fn session_provider(&self) -> Option<ProviderId> {
        self.served_before
    }

    /// The provider where the request has its place now, if any.
    pub const fn provider(&self) -> Option<ProviderId> {
        self.at
    }

    /// Moves the request to a provider before an attempt there, and away from the one before.
    /// `false`: the provider's limits were reached in the meantime (checked and counted in one
    /// step); the request is then at no provider.
    ///
    /// From now on the session is served by this provider (see [`Self::session_provider`]). It
    /// waits only for shared counters, and only if the provider has limits; with a node's own
    /// counters it completes at once.
    #[must_use = "the provider may not be asked when this is false"]
    pub async fn enter(&mut self, provider: &Provider, now: Timestamp) -> bool {
        let Some(charge) = &self.charge else { return false };
        let now = self.backend.time(now);
        if self.at == Some(provider.id) {
            return true;
        }
        if let Some(before) = self.at.take() {
            self.backend.withdraw(charge, before, now);
        }
        let entered = self.backend.enter(charge, provider, now).await;
        self.at = entered.then_some(provider.id);
        entered
    }

    /// Gives the place at the provider back, as if it had not been taken.
    pub fn leave(&mut self, now: Timestamp) {
        if let (Some(charge), Some(at)) = (&self.charge, self.at.take()) {
            self.backend.withdraw(charge, at, self.backend.time(now));
        }
    }

    /// A permit for the same request at a second provider, which it asks at the same time. It counts
    /// at that provider only: the caller's limits count the request once. `request`: an id of its
    /// own, by which shared counters know it.
    pub fn beside(&self, request: RequestId) -> Option<Self> {
        let charge = self.charge.as_ref()?;
        let charge = Charge {
            request,
            user: None,
            slot: charge.slot.clone(),
            reserved: charge.reserved,
            admitted: charge.admitted,
            minute: None,
            asks: None,
        };
        Some(Self::new(self.backend.clone(), CountedRequest::alone(charge)))
    }

    /// Ends a request that leaves its provider before its reply is complete: what it cost counts at
    /// `provider`, and the place is free as if it had not been taken.
    pub fn settle_cancelled(mut self, now: Timestamp, cost: NanoUsd, provider: ProviderId) {
        self.leave(now);
        self.settle(now, cost, Some(provider));
    }

    /// Ends the request: the actual cost replaces the reservation, in the windows of the admission.
    /// The session stays live for the TTL. `provider`: the one that served it, which the cost is
    /// counted for. A cost below zero counts as zero.
    pub fn settle(mut self, now: Timestamp, cost: NanoUsd, provider: Option<ProviderId>) {
        if let Some(charge) = self.charge.take() {
            let cost = cost.max(NanoUsd::ZERO);
            let now = self.backend.time(now);
            self.backend.settle(&charge, &Settlement { now, cost, at: self.at, served: provider });
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(charge) = self.charge.take() {
            self.backend.give_back(&charge, self.at);
        }
    }
}
