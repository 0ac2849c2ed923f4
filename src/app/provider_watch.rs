//! Stores how providers are, every five minutes, and when their credentials were used last, at most
//! once a minute.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::policy::provider_state::ProviderState;
use crate::policy::select::Availability;
use crate::state::Node;
use crate::state::credential_uses;
use crate::store::{LOOK_MS, StoreError};

const EVERY: Duration = Duration::from_secs(60);
/// How long it waits for the database.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The same at the end.
const LAST: Duration = Duration::from_secs(2);

/// Runs until `stop` resolves. What the database does not take is stored a minute later.
pub(super) async fn run(node: Arc<Node>, stop: impl Future<Output = ()>) {
    tokio::pin!(stop);
    let mut looked_for = None;
    loop {
        let watched = tokio::time::timeout(TIME_LIMIT, watch(&node, &mut looked_for)).await;
        if let Ok(Err(error)) = watched {
            tracing::debug!(%error, "the states of providers could not be stored");
        }
        tokio::select! {
            () = &mut stop => break,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
    // The last uses are not lost.
    let _ = tokio::time::timeout(LAST, watch(&node, &mut looked_for)).await;
}

async fn watch(node: &Node, looked_for: &mut Option<i64>) -> Result<(), StoreError> {
    let (snapshot, now) = (node.state.snapshot(), node.clock.now());
    let uses = &node.credential_uses;
    uses.renew(node.store.credential_uses().await?);
    let here =
        |one: &Arc<Provider>| credential_uses::used_here(&node.health, &node.credentials, one, now);
    let news = uses.news(snapshot.providers.iter().flat_map(here));
    if !news.is_empty() {
        node.store.note_credential_uses(&news).await?;
        uses.renew(node.store.credential_uses().await?);
    }
    let slot = now.0.div_euclid(LOOK_MS);
    if *looked_for != Some(slot) {
        let enabled = snapshot.providers.iter().filter(|provider| provider.is_enabled);
        let states: Vec<_> = enabled.map(|one| (one.id, is_up(node, one, now))).collect();
        node.store.note_provider_states(now, &states).await?;
        *looked_for = Some(slot);
    }
    Ok(())
}

/// Whether a request to the provider can be expected to be answered.
fn is_up(node: &Node, provider: &Provider, now: Timestamp) -> bool {
    let state = node.health.seen(provider, now).state;
    matches!(state, ProviderState::NeverUsed | ProviderState::Healthy)
        && node.credentials.availability(provider, now) == Availability::Ready
}
