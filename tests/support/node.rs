//! The shared parts of a gateway process, for tests that use them without one.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tollgate::config;
use tollgate::crypto::vault::Vault;
use tollgate::domain::clock::Clock;
use tollgate::domain::secret::Secret;
use tollgate::limits::Counters;
use tollgate::state::{
    AdminToken, Conditions, CredentialStates, CredentialUses, Events, Health, Node,
    ProbedProviders, RejectedRequests, State,
};
use tollgate::store::Store;
use tollgate::telemetry::Metrics;

/// The administrator's token of these nodes.
pub const TOKEN: &str = "the-administrators-token";

/// A node with the settings' defaults, except that it fetches no price list.
pub async fn node(store: Store, counters: Counters, clock: Arc<dyn Clock>) -> Arc<Node> {
    let events = Events::default();
    let vault = Vault::from_secret(&Secret::new("a secret for the tests"));
    let state = State::open(store.clone(), vault, events.clone()).await.unwrap();
    let config = config::load_str("prices:\n  sync: off\n", "test.yaml", &|_| None).unwrap();
    Arc::new(Node {
        store,
        state,
        counters,
        metrics: Arc::new(Metrics::new().unwrap()),
        health: Arc::new(Health::new(events.clone())),
        credentials: CredentialStates::default(),
        credential_uses: CredentialUses::default(),
        probed: ProbedProviders::default(),
        conditions: Conditions::default(),
        events,
        live: Arc::new(ArcSwap::from_pointee(config.live)),
        admin_token: Arc::new(AdminToken::new(Secret::new(TOKEN))),
        listings: Arc::default(),
        rejected: Arc::new(RejectedRequests::new(clock.now())),
        unpriced_models: Arc::default(),
        clock,
    })
}

/// Another node on the same data, with a clock and events of its own.
pub fn beside(node: &Node, clock: Arc<dyn Clock>) -> Arc<Node> {
    Arc::new(Node {
        clock,
        store: node.store.clone(),
        state: Arc::clone(&node.state),
        counters: node.counters.clone(),
        metrics: Arc::clone(&node.metrics),
        health: Arc::clone(&node.health),
        credentials: CredentialStates::default(),
        credential_uses: CredentialUses::default(),
        probed: ProbedProviders::default(),
        conditions: Conditions::default(),
        events: Events::default(),
        live: Arc::clone(&node.live),
        admin_token: Arc::clone(&node.admin_token),
        listings: Arc::clone(&node.listings),
        rejected: Arc::clone(&node.rejected),
        unpriced_models: Arc::clone(&node.unpriced_models),
    })
}
