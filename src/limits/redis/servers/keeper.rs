//! The task that maintains the shared counters, on one server or on several.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::join_all;

use super::super::keeper::ServerKeeper;
use super::super::reads::Reads;
use super::super::{Ledger, Shared};
use super::Servers;
use crate::domain::clock::Clock;

/// The task that maintains the shared counters: connects to every server, sends what was counted,
/// listens for news, and rebuilds the counters that a server has lost.
pub struct Keeper(Vec<ServerKeeper>);

impl Keeper {
    /// Of the counters on one server.
    pub(in super::super::super) fn of_one(
        shared: &Arc<Shared>,
        ledger: Arc<dyn Ledger>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self(vec![ServerKeeper::new(Arc::clone(shared), Arc::new(Reads::of(ledger, 1)), clock)])
    }

    /// Of the counters on several servers.
    pub(in super::super::super) fn of_all(
        servers: &Servers,
        ledger: &Arc<dyn Ledger>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let reads = Arc::new(Reads::of(Arc::clone(ledger), servers.each().count()));
        let keeper = |shared: &Arc<Shared>| {
            ServerKeeper::new(Arc::clone(shared), Arc::clone(&reads), Arc::clone(clock))
        };
        Self(servers.each().map(keeper).collect())
    }

    /// Runs until `stop` resolves; then sends what is queued, for two seconds at most. Returns
    /// whether each server has everything that was counted; if not, the counters must be rebuilt.
    pub async fn run(self, stop: impl Future<Output = ()>) -> bool {
        let stop = stop.shared();
        let ended = self.0.into_iter().map(|keeper| keeper.run(stop.clone()));
        join_all(ended).await.into_iter().all(|has_all| has_all)
    }
}
