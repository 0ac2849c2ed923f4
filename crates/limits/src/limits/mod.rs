//! Spend, sessions and requests per minute: the figures that are counted against limits.
//!
//! A request is admitted by all thirteen checks or by none, in one atomic step under one lock: a
//! user's keys are part of the user's record, so no second lock is needed. The request then holds a
//! [`Permit`]. Settling the permit replaces the reserved estimate by the actual cost; dropping it
//! takes everything back.
//!
//! - **Spend** is kept per minute of the request's start for a little over a day (for the rolling
//!   windows and the daily one, whose reset time may change), and as sums for the calendar week,
//!   the month and the lifetime. A minute leaves a rolling window when all of it is outside: never
//!   too early, at most a minute late.
//! - **Reservations** use the same buckets and sums, separate from the actual spend: checks use
//!   both, readers the actual spend. A request's own reservation is added after its checks, so a
//!   single client gets exact limits.
//! - **Requests per minute** are a sliding window of the past 60 seconds.
//! - **Sessions** are live while a request is in flight, and for the TTL after the last one's end.
//!
//! A node's own counters ([`memory`]) are rebuilt from the ledger at start. Functions that may use
//! shared counters are `async`; with a node's own counters their futures are ready at once, without
//! an allocation.

mod admission;
mod backend;
mod charge;
mod checks;
#[cfg(any(test, fuzzing))]
mod example;
mod expectation;
mod held;
mod holder;
mod late;
mod listing;
mod marker;
mod memory;
mod past;
mod permit;
mod provider;
mod rebuild;
mod redis;
mod rpm;
mod sessions;
mod settings;
mod shards;
mod spend;
mod standing;
mod start;
mod sweep;
mod usage;

use std::sync::Arc;

use chrono_tz::Tz;

pub use crate::domain::limit_type::LimitType;
pub use admission::{Admission, Amount, Asks, Denied, Exceeds, Refused};
pub use charge::{Charge, Settlement};
pub use listing::LiveSession;
pub use past::FromStore;
pub use permit::Permit;
pub use provider::Blocked;
#[cfg(fuzzing)]
pub use redis::fuzz_answer;
pub use redis::{
    ConnectionTask, CounterSource, MOST_WAITING, RedisFacts, SharedSettings, SharedState,
    TOLERATED_MS, TimeSource, examine, rebuild_shared,
};
pub use rpm::MinuteEntry;
pub use sessions::Slot;
pub use settings::{CounterSettings, OnRedisLoss};
pub use standing::{MoneyLeft, RequestsLeft, Standing};
pub use start::CountersError;
pub use sweep::Holder;
pub use usage::{CountUsage, HolderUsage, MoneyUsage};

use crate::domain::clock::{Clock, Timestamp};
use backend::CounterBackend;
use charge::CountedRequest;

use crate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use crate::domain::key::Key;
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;
use crate::domain::user::User;
use crate::store::{RecentRequest, SpendSeen};
use marker::Marker;
use memory::Memory;
use redis::Shared;

/// The counters. Cheap to clone.
#[derive(Clone)]
pub struct Counters {
    backend: CounterBackend,
    /// Shows the next start that this process counted in Redis.
    marker: Option<Arc<Marker>>,
}

impl Counters {
    /// A node's own counters, empty. Spending is loaded with [`Self::rebuild`].
    pub fn new(settings: CounterSettings) -> Self {
        Self { backend: CounterBackend::Own(Arc::new(Memory::new(settings))), marker: None }
    }

    /// Counters that all nodes share, in Redis. They count only for this node until the connection
    /// task runs ([`Self::connection_task`]).
    ///
    /// # Errors
    /// When the address is invalid; the error does not contain it.
    pub fn shared(settings: CounterSettings, shared: SharedSettings) -> Result<Self, String> {
        let backend = CounterBackend::Shared(Shared::new(settings, shared)?);
        Ok(Self { backend, marker: None })
    }

    /// The task that maintains shared counters; `None` for a node's own.
    pub fn connection_task(
        &self,
        ledger: Arc<dyn CounterSource>,
        clock: Arc<dyn Clock>,
    ) -> Option<ConnectionTask> {
        match &self.backend {
            CounterBackend::Own(_) => None,
            CounterBackend::Shared(shared) => {
                Some(ConnectionTask::new(Arc::clone(shared), ledger, clock))
            }
        }
    }

    /// The state of shared counters; `None` for a node's own.
    pub fn shared_state(&self) -> Option<SharedState> {
        match &self.backend {
            CounterBackend::Own(_) => None,
            CounterBackend::Shared(shared) => Some(shared.state()),
        }
    }

    /// What is wrong while requests are not counted in Redis, for operators.
    pub fn shared_fault(&self) -> Option<String> {
        self.shared_state()?.fault()
    }

    /// Resolves when shared counters are reachable; at once for a node's own.
    pub async fn connected(&self) {
        match &self.backend {
            CounterBackend::Own(_) => {}
            CounterBackend::Shared(shared) => shared.connected().await,
        }
    }

    /// Resolves when shared counters have everything that was counted here; at once for a node's
    /// own.
    pub async fn flushed(&self) {
        match &self.backend {
            CounterBackend::Own(_) => {}
            CounterBackend::Shared(shared) => shared.flushed().await,
        }
    }

    /// Runs all thirteen checks and counts the request: in one step, or not at all.
    ///
    /// # Errors
    /// The first limit that is reached, in the order of docs/limits-and-money.md. Nothing is
    /// counted then.
    pub async fn admit(&self, admission: &Admission<'_>) -> Result<Permit, Refused> {
        self.backend.admit(admission, None).await
    }

    /// As [`Self::admit`], for a request that will probably try `first` before other providers.
    /// Shared counters take its place there in the same step and round trip, if none of its limits
    /// is reached, and the session is not served by another one. Then [`Permit::enter`] need not
    /// ask; otherwise it asks as ever.
    ///
    /// # Errors
    /// As [`Self::admit`]. A place that is not free is not an error.
    pub async fn admit_to(
        &self,
        admission: &Admission<'_>,
        first: Option<&Provider>,
    ) -> Result<Permit, Refused> {
        self.backend.admit(admission, first).await
    }

    /// Whether [`Self::admit_to`] makes use of a provider: counters are shared. Without limits, its
    /// place is taken too: an operation for each request that enters it would cost Redis more.
    pub const fn takes_places(&self) -> bool {
        !matches!(self.backend, CounterBackend::Own(_))
    }

    /// For traffic of the admin token: no key, no user, no limits. It still counts towards provider
    /// limits.
    pub fn bypass(
        &self,
        request: RequestId,
        session: &SessionId,
        estimate: NanoUsd,
        now: Timestamp,
    ) -> Permit {
        let admitted = self.backend.time(now);
        Permit::new(
            self.backend.clone(),
            CountedRequest::alone(self.memory().charge(request, session, estimate, admitted)),
        )
    }

    /// Which of the providers may not get a request of this session now, and why. Changes no
    /// figure.
    pub async fn blocked(
        &self,
        providers: &[Arc<Provider>],
        key: Option<KeyId>,
        session: &SessionId,
        now: Timestamp,
    ) -> Vec<(ProviderId, Blocked)> {
        let slot = Slot { key, session: session.clone() };
        self.backend.blocked(providers, &slot, self.backend.time(now)).await
    }

    /// As [`Self::blocked`], by what this node knows alone: nothing is asked.
    pub fn blocked_here(
        &self,
        providers: &[Arc<Provider>],
        key: Option<KeyId>,
        session: &SessionId,
        now: Timestamp,
    ) -> Vec<(ProviderId, Blocked)> {
        let slot = Slot { key, session: session.clone() };
        self.memory().blocked(providers, &slot, self.backend.time(now))
    }

    /// The provider that last served a live session, as far as this node knows (see
    /// [`Permit::session_provider`]).
    pub fn session_provider(
        &self,
        user: UserId,
        key: KeyId,
        session: &SessionId,
        now: Timestamp,
    ) -> Option<ProviderId> {
        self.memory().session_provider(user, key, session, self.backend.time(now))
    }

    /// What a key has used of its limits, without reservations.
    pub async fn key_usage(&self, key: &Key, now: Timestamp) -> HolderUsage {
        self.backend.key_usage(key, self.backend.time(now)).await
    }

    /// What a user has used of their limits, without reservations.
    pub async fn user_usage(&self, user: &User, now: Timestamp) -> HolderUsage {
        self.backend.user_usage(user, self.backend.time(now)).await
    }

    /// What a provider has used of its limits, without reservations.
    pub async fn provider_usage(&self, provider: &Provider, now: Timestamp) -> HolderUsage {
        self.backend.provider_usage(provider, self.backend.time(now)).await
    }

    /// The usual number of output tokens in a key's replies from a model: the 90th percentile of
    /// the recent ones; `None` until twenty are known.
    pub fn expected_output(&self, key: KeyId, model: &str) -> Option<u64> {
        self.memory().expectations.get(key, model)
    }

    /// Records the output tokens of a reply for [`Self::expected_output`].
    pub fn learn_output(&self, key: KeyId, model: &str, output_tokens: u64) {
        self.memory().expectations.learn(key, model, output_tokens);
    }

    /// Every live session, in no particular order; of all nodes, if counters are shared.
    pub async fn live_sessions(&self, now: Timestamp) -> Vec<LiveSession> {
        self.backend.live_sessions(self.backend.time(now)).await
    }

    /// How many live sessions this node has.
    pub fn sessions_here(&self, now: Timestamp) -> usize {
        self.memory().sessions_here(self.backend.time(now))
    }

    /// Replaces everything counted so far by the ledger's sums: for the start, before the first
    /// request.
    ///
    /// Its rows must reach back to the start of the month and of the week, and at least 26 hours.
    pub fn rebuild(&self, past: &SpendSeen, now: Timestamp) {
        self.memory().rebuild(past, self.backend.time(now));
    }

    /// Replays the requests of the last minutes, after [`Self::rebuild`]: live sessions and
    /// requests per minute. They must be ordered by their start, and reach back to
    /// [`Self::replay_from`]. Does nothing for shared counters, which keep these figures
    /// themselves.
    pub fn replay(&self, requests: impl IntoIterator<Item = RecentRequest>, now: Timestamp) {
        if let CounterBackend::Own(memory) = &self.backend {
            memory.replay(requests, now);
        }
    }

    /// The time from which [`Self::replay`] needs the requests that ended.
    pub fn replay_from(&self, now: Timestamp) -> Timestamp {
        now.plus_ms(-self.memory().settings.session_ttl_ms.max(rpm::WINDOW_MS))
    }

    /// The time from which [`Self::rebuild`] needs rows.
    pub fn rebuild_from(&self, now: Timestamp) -> Timestamp {
        Memory::rebuild_from(now, self.zone())
    }

    /// Frees idle entries: aged buckets, ended sessions, holders without any figures, and holders
    /// that `keep` rejects (deleted ones). Call it about once a minute.
    pub fn sweep(&self, now: Timestamp, keep: &dyn Fn(Holder) -> bool) {
        self.memory().sweep(self.backend.time(now), keep);
    }

    /// The time zone of calendar windows: this node's, or the nodes' shared one if it differs.
    pub fn zone(&self) -> Tz {
        self.backend.zone()
    }

    fn memory(&self) -> &Memory {
        self.backend.memory()
    }
}
