//! Proofs about the counters: order, races, and a model that keeps every event.

mod behaviour;
mod model;
mod order;
mod races;

use chrono_tz::Tz;

use super::{Admission, CounterSettings, Counters, Denied, Permit};
use crate::domain::clock::Timestamp;
use crate::domain::group::Groups;
use crate::domain::ids::{KeyId, ProviderId, SessionId, UserId};
use crate::domain::key::{CacheTtl, Key, KeyHash};
use crate::domain::limits::Limits;
use crate::domain::money::NanoUsd;
use crate::domain::provider::{BreakerSettings, InstructionsStrategy, Provider, ProviderTimeouts, ProviderType};
use crate::domain::secret::Secret;
use crate::domain::user::{Role, User};

/// 2026-11-18T12:00:30Z, a Wednesday.
const NOON: Timestamp = Timestamp(1_795_003_230_000);
const TTL_MS: i64 = 300_000;

fn counters(tz: Tz) -> Counters {
    Counters::new(CounterSettings { session_ttl_ms: TTL_MS, reservation: true, time_zone: tz })
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
    counters: &Counters,
    (key, user): (&Key, &User),
    session: &str,
    estimate: i64,
    now: Timestamp,
) -> Result<Permit, Denied> {
    let session = SessionId::from(session);
    counters.admit(&Admission { now, key, user, session: &session, estimate: NanoUsd(estimate) })
}

fn sessions(limit: u32) -> Limits {
    Limits { concurrent_sessions: limit, ..Limits::default() }
}
