//! Spend, sessions and requests per minute: what is counted against limits.
//!
//! A request is admitted by all thirteen checks or by none, in one atomic step under one lock: a
//! user's keys live inside the user's record, so no second lock is needed. It then holds a
//! [`Permit`]; the permit's end replaces the reserved estimate by the true cost, or gives
//! everything back.
//!
//! - **Spend** is kept per minute of the request's start for a little over a day (for the rolling
//!   windows and the daily one, whose reset time may change), and as sums for the calendar week,
//!   the month and the lifetime. A minute ages out of a rolling window when the whole of it is out:
//!   never too early, at most a minute late.
//! - **Reservations** lie in the same buckets and sums, apart from what was really spent: checks
//!   look at both, readers at the latter. A request's own reservation is added after its checks, so
//!   one client alone sees the limits exactly.
//! - **Requests per minute** are a sliding window of the past 60 seconds.
//! - **Sessions** are live while a request runs, and for the TTL after the last one's end.
//!
//! A node's own counters ([`memory`]) are rebuilt from the ledger at start. What may have to ask
//! shared ones is `async`; on a node's own counters those futures are ready at once and nothing is
//! allocated for them.

mod admission;
mod backend;
mod checks;
mod expectation;
mod held;
mod holder;
mod late;
mod listing;
mod memory;
mod permit;
mod provider;
mod rebuild;
mod redis;
mod rpm;
mod sessions;
mod shards;
mod spend;
mod standing;
mod sweep;
#[cfg(test)]
mod tests;
mod usage;

use std::sync::Arc;

use chrono_tz::Tz;

pub use admission::{Admission, Amount, Asks, Denied, Exceeds, LimitType, Refused};
pub use listing::LiveSession;
pub use permit::{Charge, Permit, Settlement};
pub use provider::Blocked;
pub use rebuild::{RecentRequest, SpendRow, SpendTotal};
#[cfg(fuzzing)]
pub use redis::fuzz_answer;
pub use redis::{
    Keeper, Ledger, LedgerSums, MOST_WAITING, OnLoss, SharedSettings, SharedState, TOLERATED_MS, TimeSource, probe,
};
pub use rpm::MinuteEntry;
pub use sessions::Slot;
pub use standing::{MoneyLeft, RequestsLeft, Standing};
pub use sweep::Holder;
pub use usage::{CountUsage, HolderUsage, MoneyUsage};

use crate::domain::clock::{Clock, Timestamp};
use backend::CounterBackend;
use permit::Counted;

use crate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use crate::domain::key::Key;
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;
use crate::domain::user::User;
use crate::policy::reservation::Reservation;
use memory::Memory;
use redis::Shared;

/// How counting is done; fixed for the life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterSettings {
    /// How long a session lives after its last request's end.
    pub session_ttl_ms: i64,
    /// How running requests count for the checks of others.
    pub reservation: Reservation,
    /// Of the calendar windows.
    pub time_zone: Tz,
}

/// The counters. Cheap to clone.
#[derive(Clone)]
pub struct Counters {
    books: CounterBackend,
}

impl Counters {
    #[must_use]
    pub fn new(settings: CounterSettings) -> Self {
        Self { books: CounterBackend::Own(Arc::new(Memory::new(settings))) }
    }

    /// Counters that all nodes share. They count for this node alone until the keeper runs
    /// ([`Self::keeper`]).
    ///
    /// # Errors
    /// When the address cannot be read; it is not in the text.
    pub fn shared(settings: CounterSettings, shared: SharedSettings) -> Result<Self, String> {
        Ok(Self { books: CounterBackend::Shared(Shared::new(settings, shared)?) })
    }

    /// The task that keeps shared counters; `None` for a node's own.
    #[must_use]
    pub fn keeper(&self, ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>) -> Option<Keeper> {
        match &self.books {
            CounterBackend::Own(_) => None,
            CounterBackend::Shared(shared) => Some(Keeper::new(Arc::clone(shared), ledger, clock)),
        }
    }

    /// How it stands with shared counters; `None` for a node's own.
    #[must_use]
    pub fn shared_state(&self) -> Option<SharedState> {
        match &self.books {
            CounterBackend::Own(_) => None,
            CounterBackend::Shared(shared) => Some(shared.state()),
        }
    }

    /// Resolves when shared counters can be asked; at once for a node's own.
    pub async fn connected(&self) {
        if let CounterBackend::Shared(shared) = &self.books {
            shared.connected().await;
        }
    }

    /// Resolves when shared counters know all that was counted here; at once for a node's own.
    pub async fn told(&self) {
        if let CounterBackend::Shared(shared) = &self.books {
            shared.told().await;
        }
    }

    /// All thirteen checks, and the request counted: in one step, or not at all.
    ///
    /// # Errors
    /// The first limit that is reached, in the order of docs/reference/limits.md. Nothing was
    /// counted then.
    pub async fn admit(&self, admission: &Admission<'_>) -> Result<Permit, Refused> {
        self.books.admit(admission).await
    }

    /// For traffic of the admin token: no key, no user, no limits. Provider limits see it all the
    /// same.
    pub fn bypass(&self, request: RequestId, session: &SessionId, estimate: NanoUsd, now: Timestamp) -> Permit {
        let started = self.books.time(now);
        Permit::new(self.books.clone(), Counted::alone(self.memory().charge(request, session, estimate, started)))
    }

    /// Those of the providers that may not be given a request of this session now, and why. Changes
    /// nothing that counts.
    pub async fn blocked(
        &self,
        providers: &[Arc<Provider>],
        key: Option<KeyId>,
        session: &SessionId,
        now: Timestamp,
    ) -> Vec<(ProviderId, Blocked)> {
        let slot = Slot { key, session: session.clone() };
        self.books.blocked(providers, &slot, self.books.time(now)).await
    }

    /// The provider that a live session was last served by, as far as this node knows (see
    /// [`Permit::session_provider`]).
    #[must_use]
    pub fn session_provider(
        &self,
        user: UserId,
        key: KeyId,
        session: &SessionId,
        now: Timestamp,
    ) -> Option<ProviderId> {
        self.memory().session_provider(user, key, session, self.books.time(now))
    }

    /// What a key has used of its limits. Reservations are not in it.
    pub async fn key_usage(&self, key: &Key, now: Timestamp) -> HolderUsage {
        self.books.key_usage(key, self.books.time(now)).await
    }

    /// What a user has used of their limits. Reservations are not in it.
    pub async fn user_usage(&self, user: &User, now: Timestamp) -> HolderUsage {
        self.books.user_usage(user, self.books.time(now)).await
    }

    /// What a provider has used of its limits. Reservations are not in it.
    pub async fn provider_usage(&self, provider: &Provider, now: Timestamp) -> HolderUsage {
        self.books.provider_usage(provider, self.books.time(now)).await
    }

    /// Output tokens that a key's replies from a model usually have: the 90th percentile of the
    /// recent ones; `None` until twenty are known.
    #[must_use]
    pub fn expected_output(&self, key: KeyId, model: &str) -> Option<u64> {
        self.memory().expectations.get(key, model)
    }

    /// Tells how many output tokens a key's reply from a model had.
    pub fn learn_output(&self, key: KeyId, model: &str, output_tokens: u64) {
        self.memory().expectations.learn(key, model, output_tokens);
    }

    /// Every live session, in no particular order; of all nodes, where counters are shared.
    pub async fn live_sessions(&self, now: Timestamp) -> Vec<LiveSession> {
        self.books.live_sessions(self.books.time(now)).await
    }

    /// How many live sessions this node knows of.
    #[must_use]
    pub fn sessions_here(&self, now: Timestamp) -> usize {
        self.memory().sessions_here(self.books.time(now))
    }

    /// Takes over what the ledger knows, in place of everything counted so far: for the start,
    /// before requests come.
    ///
    /// `rows` must reach back to the start of the month and of the week, and at least 26 hours.
    pub fn rebuild(
        &self,
        rows: impl IntoIterator<Item = SpendRow>,
        totals: impl IntoIterator<Item = SpendTotal>,
        now: Timestamp,
    ) {
        self.memory().rebuild(rows, totals, self.books.time(now));
    }

    /// Takes over the requests of the last minutes, after [`Self::rebuild`]: live sessions and
    /// requests per minute. They must come by their start, and reach back to [`Self::replay_from`].
    /// Shared counters know these by themselves: nothing is done.
    pub fn replay(&self, requests: impl IntoIterator<Item = RecentRequest>, now: Timestamp) {
        if let CounterBackend::Own(memory) = &self.books {
            memory.replay(requests, now);
        }
    }

    /// From when on [`Self::replay`] needs the requests that ended.
    #[must_use]
    pub fn replay_from(&self, now: Timestamp) -> Timestamp {
        now.plus_ms(-self.memory().settings.session_ttl_ms.max(rpm::WINDOW_MS))
    }

    /// From when on [`Self::rebuild`] needs rows.
    #[must_use]
    pub fn rebuild_from(&self, now: Timestamp) -> Timestamp {
        Memory::rebuild_from(now, self.zone())
    }

    /// Frees what is idle: aged buckets, ended sessions, holders without any figures, and holders
    /// that `keep` no longer knows (deleted ones). To be called every minute or so.
    pub fn sweep(&self, now: Timestamp, keep: &dyn Fn(Holder) -> bool) {
        self.memory().sweep(self.books.time(now), keep);
    }

    /// Of the calendar windows: this node's, or the cluster's where that is another.
    #[must_use]
    pub fn zone(&self) -> Tz {
        self.books.zone()
    }

    fn memory(&self) -> &Memory {
        self.books.memory()
    }
}
