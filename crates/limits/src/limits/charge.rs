//! What a request is charged with while it runs, and what it settles at the end.

use super::admission::Asks;
use super::rpm::MinuteEntry;
use super::sessions::Slot;
use super::standing::Standing;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
use crate::domain::money::NanoUsd;

/// Everything that was counted for one request.
#[derive(Debug, Clone)]
pub struct Charge {
    /// The request's id. Shared counters count each id once.
    pub request: RequestId,
    /// `None` for the admin token.
    pub user: Option<UserId>,
    /// The key and its session.
    pub slot: Slot,
    /// The estimate, or zero if reservation is off.
    pub reserved: NanoUsd,
    /// The time of admission. The request, its reservation and its cost count in the windows that
    /// contain it, and in no others: those that the checks looked at.
    pub admitted: Timestamp,
    /// The entry among the requests of the minute, on this node.
    pub minute: Option<MinuteEntry>,
    /// `None` for the admin token.
    pub asks: Option<Asks>,
}

impl Charge {
    /// The user and the key, unless the request is the admin token's.
    pub(super) fn holder(&self) -> Option<(UserId, KeyId)> {
        self.user.zip(self.slot.key)
    }
}

/// A request that was counted, and what the admission returned for it.
pub(super) struct CountedRequest {
    pub(super) charge: Charge,
    /// The provider that served the session before, if it was live.
    pub(super) served_before: Option<ProviderId>,
    pub(super) standing: Standing,
    /// The provider that it has a place at already.
    pub(super) at: Option<ProviderId>,
}

impl CountedRequest {
    /// Without limits or a session.
    pub(super) fn alone(charge: Charge) -> Self {
        Self { charge, served_before: None, standing: Standing::default(), at: None }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// The end of the request. The session is live for the TTL from here.
    pub now: Timestamp,
    /// The actual cost, nano-USD; zero if nothing is charged.
    pub cost: NanoUsd,
    /// The provider that the request had entered.
    pub at: Option<ProviderId>,
    /// The provider that served it, which the cost is counted for.
    pub served: Option<ProviderId>,
}
