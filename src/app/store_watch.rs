//! Checks the database and its replica regularly.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::drain::stopped;
use crate::state::Node;
use crate::store::ReplicaState;

/// How often the database is checked.
const HEALTH: Duration = Duration::from_secs(2);

/// Checks the database until `stop` is set, and keeps the result for `/readyz` and the
/// administration.
pub(super) async fn run(node: Arc<Node>, stop: watch::Receiver<bool>) {
    let mut stop = std::pin::pin!(stopped(stop));
    // An administration request may notice first, but the log line comes from here.
    let mut failing = false;
    let mut replica = ReplicaWatch::default();
    loop {
        let asked = node.clock.now();
        let reached = node.store.ping().await;
        match &reached {
            Ok(()) => {
                node.conditions.database_reached();
            }
            Err(_) => {
                node.conditions.database_lost(asked);
            }
        }
        match (&reached, std::mem::replace(&mut failing, reached.is_err())) {
            (Ok(()), true) => tracing::info!("the database can be reached"),
            (Err(e), false) => {
                tracing::error!(error = %e, "the database cannot be reached: requests go on, the \
                        journal keeps their records")
            }
            _ => {}
        }
        node.metrics.node.store_up(reached.is_ok());
        replica.look(&node).await;
        tokio::select! {
            () = &mut stop => return,
            () = tokio::time::sleep(HEALTH) => {}
        }
    }
}

/// Why reports do not read from the replica, as logged; `None`: they do, or there is none.
#[derive(Default)]
struct ReplicaWatch(Option<String>);

impl ReplicaWatch {
    async fn look(&mut self, node: &Node) {
        let state = match node.store.check_replica().await {
            Ok(None) => return,
            Ok(Some(state)) => state,
            Err(error) => ReplicaState::Unused(format!("database.url: {error}")),
        };
        let (lag, unused) = match state {
            ReplicaState::Used(lag) => (Some(lag.as_secs()), None),
            ReplicaState::Unused(why) => (None, Some(why)),
        };
        node.metrics.node.replica(lag);
        match (&unused, &self.0) {
            (Some(why), None) => tracing::warn!(
                why,
                "reports read from the primary, because the database of database.read_url cannot \
                 be used"
            ),
            (None, Some(_)) => tracing::info!("reports read from database.read_url again"),
            _ => {}
        }
        self.0 = unused;
    }
}
