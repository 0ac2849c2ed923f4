//! What the parts of one gateway process share: made once by `app`, and handed on as one `Arc`.
//!
//! A part keeps the node, and beside it only what is its own. The proxy's `Gateway` adds the parts
//! that only requests use.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::unpriced_models::UnpricedModels;
use super::{
    AdminToken, Conditions, CredentialStates, CredentialUses, Events, Health, Listings,
    ProbedProviders, Rejections, State,
};
use crate::config::Live;
use crate::domain::clock::Clock;
use crate::limits::Counters;
use crate::store::Store;
use crate::telemetry::Metrics;

/// The shared parts of a gateway process.
pub struct Node {
    /// The time of records, limits and cooldowns.
    pub clock: Arc<dyn Clock>,
    /// The database.
    pub store: Store,
    /// The snapshot of the configuration in effect, and its publication.
    pub state: Arc<State>,
    /// What keys, users and providers have spent, and live sessions; admits requests by the limits.
    pub counters: Counters,
    /// The registry behind `/metrics`.
    pub metrics: Arc<Metrics>,
    /// Circuits and cooldowns of providers.
    pub health: Arc<Health>,
    /// Cooldowns and windows of providers' credentials.
    pub credentials: CredentialStates,
    /// When providers' credentials were used last, on any node.
    pub credential_uses: CredentialUses,
    /// The providers that this process probes.
    pub probed: ProbedProviders,
    /// The faults of this node as a whole.
    pub conditions: Conditions,
    /// Events, for live views and other subscribers.
    pub events: Events,
    /// The settings that a reload can change.
    pub live: Arc<ArcSwap<Live>>,
    /// The token that proxy and administration accept.
    pub admin_token: Arc<AdminToken>,
    /// The models that providers list.
    pub listings: Arc<Listings>,
    /// Requests that failed authentication.
    pub rejected: Rejections,
    /// Models without a price that requests asked for.
    pub unpriced_models: Arc<UnpricedModels>,
}
