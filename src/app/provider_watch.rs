//! Stores how providers are, every five minutes, and when their credentials were used last, at most
//! once a minute.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
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
    let mut noted = Noted::default();
    loop {
        let watched = tokio::select! {
            () = &mut stop => break,
            watched = tokio::time::timeout(TIME_LIMIT, watch(&node, &mut noted)) => watched,
        };
        if let Ok(Err(error)) = watched {
            tracing::debug!(%error, "the states of providers could not be stored");
        }
        tokio::select! {
            () = &mut stop => break,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
    // The last uses are not lost, and the next process probes at once.
    let last = async {
        let watched = watch(&node, &mut noted).await;
        watched.and(leave_probes(&node).await)
    };
    if let Ok(Err(error)) = tokio::time::timeout(LAST, last).await {
        tracing::debug!(%error, "the last states of providers could not be stored");
    }
}

async fn leave_probes(node: &Node) -> Result<(), StoreError> {
    for job in node.probed.take_jobs() {
        node.store.leave_job(&job, node.probed.holder(), None).await?;
    }
    Ok(())
}

/// The providers whose states were stored in the present five minutes.
#[derive(Default)]
struct Noted {
    slot: i64,
    providers: HashSet<ProviderId>,
}

async fn watch(node: &Node, noted: &mut Noted) -> Result<(), StoreError> {
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
    if noted.slot != slot {
        *noted = Noted { slot, ..Noted::default() };
    }
    let is_due = |one: &&Arc<Provider>| {
        let is_known = one.is_enabled && !node.probed.is_elsewhere(one, now);
        is_known && !noted.providers.contains(&one.id)
    };
    let due = snapshot.providers.iter().filter(is_due);
    let states: Vec<_> = due.map(|one| (one.id, node.expects_answer(one, now))).collect();
    if !states.is_empty() {
        node.store.note_provider_states(now, &states).await?;
        noted.providers.extend(states.iter().map(|(id, _)| id));
        node.store.forget_credential_uses(&uses.gone(&snapshot)).await?;
    }
    Ok(())
}
