//! Users, keys and a provider with every limit set, none of which is reached.

use tollgate::domain::clock::Timestamp;
use tollgate::domain::feature_policy::FeaturePolicy;
use tollgate::domain::group::Groups;
use tollgate::domain::ids::{KeyId, ProviderId, UserId};
use tollgate::domain::key::{CacheTtl, Key, KeyHash};
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::domain::provider::{
    BreakerSettings, InstructionsStrategy, Provider, ProviderTimeouts, ProviderType,
};
use tollgate::domain::secret::Secret;
use tollgate::domain::user::{Role, User};

/// A summer's noon: no window begins here.
pub const START: Timestamp = Timestamp(1_750_000_000_000);

/// Every limit, far above what the bench spends.
pub fn limits() -> Limits {
    let much = Some(NanoUsd::usd(1_000_000));
    Limits {
        five_hours: much,
        daily: much,
        weekly: much,
        monthly: much,
        total: much,
        concurrent_sessions: 1_000,
        ..Limits::default()
    }
}

/// A user with every limit set, and none in reach.
pub fn limited_user(id: i64) -> User {
    User {
        id: UserId(id),
        name: "bench".to_owned(),
        note: String::new(),
        role: Role::User,
        is_enabled: true,
        expires_at: None,
        rpm: 1_000_000,
        limits: limits(),
        provider_group: Groups::default(),
        tags: Vec::new(),
        allowed_models: Vec::new(),
        allowed_clients: Vec::new(),
        features: FeaturePolicy::default(),
        lock_key_limits: false,
        max_keys: None,
        created_at: START,
        updated_at: START,
        deleted_at: None,
    }
}

/// A key of that user, likewise.
pub fn limited_key(id: i64, user: i64) -> Key {
    Key {
        id: KeyId(id),
        user_id: UserId(user),
        name: "bench".to_owned(),
        hash: KeyHash([0; 32]),
        prefix: String::new(),
        last_four: String::new(),
        is_enabled: true,
        expires_at: None,
        can_login_web_ui: false,
        limits: limits(),
        provider_group: Groups::default(),
        allowed_models: Vec::new(),
        features: FeaturePolicy::default(),
        cache_ttl: CacheTtl::Inherit,
        created_at: START,
        updated_at: START,
        deleted_at: None,
    }
}

/// A provider with every limit set, or with none.
pub fn provider(limits: Limits) -> Provider {
    Provider {
        id: ProviderId(1),
        name: "bench".to_owned(),
        url: String::new(),
        key: Secret::default(),
        kind: ProviderType::Native,
        is_enabled: true,
        weight: 1,
        priority: 0,
        cost_multiplier: NanoUsd::usd(1).to_decimal(),
        group_tag: Groups::default(),
        allowed_models: Vec::new(),
        model_redirects: Vec::new(),
        features: FeaturePolicy::default(),
        limits,
        max_retry_attempts: 2,
        breaker: BreakerSettings::default(),
        timeouts: ProviderTimeouts::default(),
        cache_ttl: CacheTtl::Inherit,
        instructions: InstructionsStrategy::default(),
        preserve_client_ip: false,
        anthropic_host: tollgate::domain::provider::AnthropicHost::Auto,
        proxy_url: None,
        note: String::new(),
        health_since: START,
        switched_off: None,
        created_at: START,
        updated_at: START,
        deleted_at: None,
    }
}
