//! Proofs about the counters: order, races, and a model that keeps every event.

mod behaviour;
mod model;
mod order;
mod races;

use std::future::Future;
use std::sync::Arc;

use chrono_tz::Tz;
use futures_util::FutureExt as _;

use super::{Admission, Blocked, CounterSettings, Counters, Denied, HolderUsage, LiveSession, Permit, Refused};
use crate::domain::clock::Timestamp;
use crate::domain::group::Groups;
use crate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use crate::domain::key::{CacheTtl, Key, KeyHash};
use crate::domain::limits::Limits;
use crate::domain::money::NanoUsd;
use crate::domain::provider::{BreakerSettings, InstructionsStrategy, Provider, ProviderTimeouts, ProviderType};
use crate::domain::secret::Secret;
use crate::domain::user::{Role, User};

/// 2026-11-18T12:00:30Z, a Wednesday.
const NOON: Timestamp = Timestamp(1_795_003_230_000);
const TTL_MS: i64 = 300_000;

fn settings(tz: Tz) -> CounterSettings {
    CounterSettings { session_ttl_ms: TTL_MS, reservation: true, time_zone: tz }
}

/// Counters under test, asked without a runtime.
struct Tested(Counters);

fn counters(tz: Tz) -> Tested {
    Tested(Counters::new(settings(tz)))
}

impl Tested {
    fn key_usage(&self, key: &Key, now: Timestamp) -> HolderUsage {
        ready(self.0.key_usage(key, now))
    }

    fn user_usage(&self, user: &User, now: Timestamp) -> HolderUsage {
        ready(self.0.user_usage(user, now))
    }

    fn provider_usage(&self, provider: &Provider, now: Timestamp) -> HolderUsage {
        ready(self.0.provider_usage(provider, now))
    }

    fn live_sessions(&self, now: Timestamp) -> Vec<LiveSession> {
        ready(self.0.live_sessions(now))
    }

    fn blocked(&self, provider: &Provider, session: &str, now: Timestamp) -> Option<Blocked> {
        let providers = [Arc::new(provider.clone())];
        let blocked = ready(self.0.blocked(&providers, Some(KeyId(1)), &SessionId::from(session), now));
        blocked.first().map(|(_, why)| *why)
    }
}

fn enter(permit: &mut Permit, provider: &Provider, now: Timestamp) -> bool {
    ready(permit.enter(provider, now))
}

fn key(id: i64, limits: Limits) -> Key {
    Key {
        id: KeyId(id),
        user_id: UserId(1),
        name: String::new(),
        hash: KeyHash([0; 32]),
        prefix: String::new(),
        last_four: String::new(),
        is_enabled: true,
        expires_at: None,
        can_login_web_ui: false,
        limits,
        provider_group: Groups::default(),
        cache_ttl: CacheTtl::Inherit,
        created_at: NOON,
        updated_at: NOON,
        deleted_at: None,
    }
}

fn user(rpm: u32, limits: Limits) -> User {
    User {
        id: UserId(1),
        name: String::new(),
        note: String::new(),
        role: Role::User,
        is_enabled: true,
        expires_at: None,
        rpm,
        limits,
        provider_group: Groups::default(),
        tags: Vec::new(),
        allowed_models: Vec::new(),
        allowed_clients: Vec::new(),
        created_at: NOON,
        updated_at: NOON,
        deleted_at: None,
    }
}

fn provider(limits: Limits) -> Provider {
    Provider {
        id: ProviderId(1),
        name: String::new(),
        url: String::new(),
        key: Secret::default(),
        kind: ProviderType::Native,
        is_enabled: true,
        weight: 1,
        priority: 0,
        cost_multiplier: rust_decimal::Decimal::ONE,
        group_tag: Groups::default(),
        allowed_models: Vec::new(),
        model_redirects: Vec::new(),
        limits,
        max_retry_attempts: 2,
        breaker: BreakerSettings::default(),
        timeouts: ProviderTimeouts::default(),
        cache_ttl: CacheTtl::Inherit,
        instructions: InstructionsStrategy::default(),
        preserve_client_ip: false,
        proxy_url: None,
        note: String::new(),
        created_at: NOON,
        updated_at: NOON,
        deleted_at: None,
    }
}

/// Asks for one request of a session, with an estimate in nano-USD.
fn ask(
    counters: &Tested,
    (key, user): (&Key, &User),
    session: &str,
    estimate: i64,
    now: Timestamp,
) -> Result<Permit, Denied> {
    let session = SessionId::from(session);
    let request = RequestId::new();
    let ask = Admission { request, now, key, user, session: &session, estimate: NanoUsd(estimate) };
    ready(counters.0.admit(&ask)).map_err(|refused| match refused {
        Refused::Limit(denied) => denied,
        Refused::Unreachable => panic!("{refused}"),
    })
}

/// The result of what must not have to wait.
fn ready<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("a node's own counters are not waited for")
}

fn sessions(limit: u32) -> Limits {
    Limits { concurrent_sessions: limit, ..Limits::default() }
}
