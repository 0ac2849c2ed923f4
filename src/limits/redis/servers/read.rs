//! What the counters on several servers have: of each holder, and of all servers together.

use std::sync::Arc;

use chrono_tz::Tz;
use futures_util::future::join_all;

use super::super::operations::Asked;
use super::super::{Shared, SharedState};
use super::Servers;
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::limits::listing::LiveSession;
use crate::limits::provider::{Blocked, is_limited};
use crate::limits::rebuild::Owned;
use crate::limits::sessions::Slot;
use crate::limits::usage::HolderUsage;

impl Servers {
    /// The servers that have one of these providers with limits are asked at once, unless this
    /// node's own figures leave room at all of them.
    pub(in super::super::super) async fn blocked(
        &self,
        providers: &[Arc<Provider>],
        slot: &Slot,
        now: Timestamp,
    ) -> Vec<(ProviderId, Blocked)> {
        let mut limited = providers.iter().filter(|provider| is_limited(&provider.limits));
        let near = self.memory.blocked(providers, slot, self.time(now));
        if near.is_empty() && limited.all(|provider| self.of_provider(provider.id).link.is_up()) {
            return near;
        }
        let asked = self.all.iter().map(async |server| {
            let has = |provider: &&Arc<Provider>| server.part.has_provider(provider.id);
            let there: Vec<_> = providers.iter().filter(has).cloned().collect();
            server.blocked(&there, slot, server.time(now)).await
        });
        join_all(asked).await.concat()
    }

    /// `None` if the holder's server is unreachable.
    pub(in super::super::super) async fn usage(
        &self,
        asked: &Asked<'_>,
        now: Timestamp,
    ) -> Option<HolderUsage> {
        let server = match asked.holder {
            Owned::User(user) | Owned::Key(user, _) => self.of_user(user),
            Owned::Provider(provider) => self.of_provider(provider),
        };
        server.usage(asked, server.time(now)).await
    }

    /// Of a server that is unreachable, those that this node knows.
    pub(in super::super::super) async fn live_sessions(&self, now: Timestamp) -> Vec<LiveSession> {
        let listed = self.all.iter().map(|server| server.live_sessions(server.time(now)));
        join_all(listed).await.concat()
    }

    /// The time zone of the shared windows.
    pub(in super::super::super) fn zone(&self) -> Tz {
        self.first().zone()
    }

    /// The state of each server, in the order of the list.
    pub(in super::super::super) fn states(&self) -> Vec<SharedState> {
        self.all.iter().map(|server| server.state()).collect()
    }

    /// Resolves when all servers are reachable.
    pub(in super::super::super) async fn connected(&self) {
        join_all(self.all.iter().map(|server| server.connected())).await;
    }

    /// Resolves when all servers have everything that this node counted.
    pub(in super::super::super) async fn flushed(&self) {
        join_all(self.all.iter().map(|server| server.flushed())).await;
    }

    /// Each server's counters.
    pub(super) fn each(&self) -> impl Iterator<Item = &Arc<Shared>> {
        self.all.iter()
    }
}
