//! Records and rows for the store's tests.

use std::sync::Arc;

use rust_decimal::Decimal;
use tollgate::domain::cache_miss::{CacheMiss, CacheMissCause};
use tollgate::domain::clock::Timestamp;
use tollgate::domain::cloud::ClaudeCloud;
use tollgate::domain::feature::Feature;
use tollgate::domain::feature_policy::FeaturePolicy;
use tollgate::domain::format::WireFormat;
use tollgate::domain::group::Groups;
use tollgate::domain::ids::{CredentialId, KeyId, ProviderId, RequestId, SessionId, UserId};
use tollgate::domain::key::{CacheTtl, Key, KeyHash};
use tollgate::domain::limits::{DailyReset, Limits, ResetMode, TimeOfDay};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::part::{Part, PartKind};
use tollgate::domain::provider::{
    AnthropicHost, BreakerSettings, InstructionsStrategy, LastError, Provider, ProviderTimeouts,
    ProviderType, SwitchedOff,
};
use tollgate::domain::provider_auth::ProviderAuth;
use tollgate::domain::provider_credential::ProviderCredential;
use tollgate::domain::provider_tls::ProviderTls;
use tollgate::domain::record::{Decision, DecisionStep, Record, RequestOutcome};
use tollgate::domain::secret::Secret;
use tollgate::domain::usage::{ServiceTier, Usage};
use tollgate::domain::user::{Role, User};

/// Some day in 2026, at a full hour.
pub const NOON: Timestamp = Timestamp(1_790_000_000_000 - 1_790_000_000_000 % 3_600_000);

pub fn limits() -> Limits {
    Limits {
        five_hours: Some(NanoUsd(1)),
        daily: Some(NanoUsd::ZERO),
        weekly: None,
        monthly: Some(NanoUsd(i64::MAX)),
        total: Some(NanoUsd::usd(10_000_000)),
        concurrent_sessions: u32::MAX,
        daily_reset: DailyReset {
            mode: ResetMode::Rolling,
            time: TimeOfDay::parse("23:59").unwrap(),
        },
    }
}

fn features() -> FeaturePolicy {
    FeaturePolicy {
        allowed: [Feature::Maps, Feature::BillingPolicy].into_iter().collect(),
        denied: [Feature::HostedTools].into_iter().collect(),
    }
}

/// With every field set to something that is not its default.
pub fn user() -> User {
    User {
        id: UserId(0),
        name: "Zoë \u{1f30a} 'quoted' \"twice\"".to_owned(),
        note: "line\nline\ttab".to_owned(),
        role: Role::Admin,
        is_enabled: false,
        expires_at: Some(Timestamp(i64::MAX)),
        rpm: 1_000_000,
        limits: limits(),
        provider_group: Groups::parse("gold,*"),
        tags: vec!["tag, with comma".to_owned(), String::new()],
        allowed_models: vec!["model-*".to_owned()],
        allowed_clients: vec!["cli/1".to_owned(), "日本語".to_owned()],
        features: features(),
        lock_key_limits: true,
        max_keys: Some(3),
        created_at: NOON,
        updated_at: NOON.plus_ms(1),
        deleted_at: None,
    }
}

/// With every optional field empty.
pub fn plain_user(name: &str) -> User {
    User { name: name.to_owned(), ..User::blank(NOON) }
}

/// A key whose hash follows from its name.
pub fn key(user_id: UserId, name: &str) -> Key {
    let mut hash = [0xff; 32];
    for (at, byte) in format!("{user_id}{name}").bytes().enumerate() {
        hash[at % 32] ^= byte;
    }
    Key {
        id: KeyId(0),
        user_id,
        name: name.to_owned(),
        hash: KeyHash(hash),
        prefix: "sk-ab12".to_owned(),
        last_four: "wxyz".to_owned(),
        is_enabled: true,
        expires_at: Some(NOON.plus_ms(-1)),
        can_login_web_ui: true,
        limits: limits(),
        provider_group: Groups::parse("gold"),
        cache_ttl: CacheTtl::OneHour,
        allowed_models: vec!["model-*".to_owned()],
        features: features(),
        created_at: NOON,
        updated_at: NOON,
        deleted_at: None,
    }
}

fn credentials() -> Vec<ProviderCredential> {
    vec![
        ProviderCredential::of_key(),
        ProviderCredential {
            id: CredentialId(i64::MAX),
            name: "it's “b”".to_owned(),
            is_enabled: false,
            refused: Some(LastError {
                kind: "status".to_owned(),
                status: Some(401),
                message: "no".to_owned(),
                at: NOON,
            }),
            since: NOON,
        },
    ]
}

fn tls() -> ProviderTls {
    ProviderTls {
        ca: Some("an authority".to_owned()),
        client_certificate: Some("a certificate".to_owned()),
        client_key: Secret::default(),
    }
}

fn breaker() -> BreakerSettings {
    BreakerSettings {
        failure_threshold: 0,
        open_duration_ms: u64::from(u32::MAX),
        half_open_success_threshold: 7,
    }
}

pub fn provider() -> Provider {
    Provider {
        id: ProviderId(0),
        name: "näher".to_owned(),
        url: "https://up.example/v1?x='".to_owned(),
        key: Secret::default(),
        kind: ProviderType::NativeAuth,
        cloud: ClaudeCloud::None,
        auth: ProviderAuth::ApiKey,
        custom_headers: Vec::new(),
        header_secrets: Vec::new(),
        query: vec![("z".to_owned(), "y&".to_owned()), ("a".to_owned(), String::new())],
        path_template: Some("/{model}/{path}".to_owned()),
        credentials: credentials(),
        variants: Vec::new(),
        credential: None,
        quota_guard: Some(95),
        is_enabled: false,
        weight: 100,
        priority: i32::MIN,
        cost_multiplier: "0.1234567890123456789012345678".parse().unwrap(),
        group_tag: Groups::parse("a,b"),
        allowed_models: vec!["m*".to_owned()],
        model_redirects: vec![("z".to_owned(), "y".to_owned()), ("a".to_owned(), "b".to_owned())],
        features: features(),
        limits: limits(),
        max_retry_attempts: 10,
        breaker: breaker(),
        timeouts: ProviderTimeouts {
            first_byte_streaming_ms: Some(0),
            streaming_idle_ms: None,
            streaming_content_ms: Some(300_000),
            request_non_streaming_ms: Some(600_000),
        },
        cache_ttl: CacheTtl::FiveMinutes,
        instructions: InstructionsStrategy::ForceOfficial,
        preserve_client_ip: true,
        anthropic_host: AnthropicHost::Yes,
        websocket: true,
        probe_interval: Some(60),
        probe_model: Some("m".to_owned()),
        proxy_url: Some("http://proxy:3128".to_owned()),
        proxy_password: Secret::default(),
        tls: tls(),
        note: "note".to_owned(),
        health_since: NOON.plus_ms(7),
        switched_off: Some(SwitchedOff {
            at: NOON.plus_ms(9),
            failed_probes: 3,
            error: Some(LastError {
                kind: "status".to_owned(),
                status: Some(502),
                message: "bad \"gateway\"".to_owned(),
                at: NOON.plus_ms(8),
            }),
        }),
        created_at: NOON,
        updated_at: NOON.plus_ms(2),
        deleted_at: None,
    }
}

/// With only the fields that every record has.
pub fn bare_record() -> Record {
    Record {
        request_id: RequestId::new(),
        started_at: NOON,
        admitted_ms: 0,
        key_id: None,
        key_name: None,
        user_id: None,
        user_name: None,
        session_id: None,
        provider_id: None,
        provider_name: None,
        client_format: WireFormat::Native,
        provider_format: None,
        endpoint: "/v1/messages".into(),
        model: "model-a".into(),
        upstream_model: None,
        streamed: false,
        status_code: 200,
        outcome: RequestOutcome::Completed,
        error_message: None,
        usage: Usage::default(),
        cost: None,
        price_model: None,
        parts: Vec::new(),
        notional_cost: None,
        cache_miss: None,
        cost_multiplier: Decimal::ONE,
        estimated: false,
        duration_ms: 0,
        first_byte_ms: None,
        overhead_us: 0,
        attempts: 0,
        decisions: Vec::new(),
        user_agent: None,
        client_addr: None,
    }
}

fn cache_miss() -> CacheMiss {
    let (cause, cost) = (CacheMissCause::Message, NanoUsd(123_456));
    CacheMiss { cause, message: 7, tokens: 41_000, cost }
}

fn decisions() -> Vec<Decision> {
    let decision = Decision {
        provider_id: Some(ProviderId(3)),
        provider_name: "näher".into(),
        step: DecisionStep::AttemptFailed,
        detail: Some("500 \"server_error\"\u{0}".into()),
        status: Some(500),
        at_ms: 12,
        took_ms: Some(34),
        usage: Some(usage()),
    };
    let other = Decision { provider_id: None, usage: None, detail: None, ..decision.clone() };
    vec![decision, other]
}

/// With every field set.
pub fn full_record() -> Record {
    let text = |text: &str| Some(Arc::<str>::from(text));
    Record {
        request_id: RequestId::new(),
        started_at: NOON.plus_ms(123),
        admitted_ms: 40,
        key_id: Some(KeyId(1)),
        key_name: text("default"),
        user_id: Some(UserId(2)),
        user_name: text("Zoë \u{1f30a}"),
        session_id: Some(SessionId::from("sess-1")),
        provider_id: Some(ProviderId(3)),
        provider_name: text("näher"),
        client_format: WireFormat::Chat,
        provider_format: Some(WireFormat::AltCli),
        endpoint: "/v1/chat/completions".into(),
        model: "model-ü".into(),
        upstream_model: text("model-up"),
        streamed: true,
        status_code: 502,
        outcome: RequestOutcome::BrokenOff,
        error_message: Some("broke off: 'x' \\ \"y\"\n".to_owned()),
        usage: usage(),
        cost: Some(NanoUsd(1_234_567_891)),
        price_model: text("model-priced"),
        parts: vec![
            Part { free: true, ..Part::new(PartKind::Message, None, usage()) },
            Part {
                quantity: 3,
                cost: Some(NanoUsd(5)),
                price_model: text("dear"),
                ..Part::new(PartKind::AdvisorMessage, text("dear-ü"), usage())
            },
        ],
        cache_miss: Some(cache_miss()),
        notional_cost: Some(NanoUsd(7_500)),
        cost_multiplier: "1.05".parse().unwrap(),
        estimated: true,
        duration_ms: 1_500,
        first_byte_ms: Some(0),
        overhead_us: 42,
        attempts: 3,
        decisions: decisions(),
        user_agent: text("cli/1.2 (x)"),
        client_addr: text("2001:db8::1"),
    }
}

fn usage() -> Usage {
    Usage {
        input: 1,
        output: 2,
        cache_write_5m: 3,
        cache_write_1h: 4,
        cache_read: 5,
        reasoning: 6,
        image_input: 7,
        image_output: 8,
        audio_input: 9,
        audio_output: 10,
        web_searches: 11,
        tier: ServiceTier::Flex,
        image_cache_read: 2,
        audio_cache_read: 3,
    }
}

/// The `n`th of many that differ in every field that logs are filtered by.
pub fn varied_record(n: u64) -> Record {
    let pick = |of: u64| i64::try_from(n % of).unwrap();
    let status = [200, 200, 200, 429, 500][usize::try_from(n % 5).unwrap()];
    Record {
        request_id: RequestId::new(),
        // 24 minutes apart: some hours hold two, some three
        started_at: NOON.plus_ms(i64::try_from(n).unwrap() * 24 * 60_000),
        key_id: (!n.is_multiple_of(7)).then(|| KeyId(1 + pick(4))),
        user_id: (!n.is_multiple_of(7)).then(|| UserId(1 + pick(2))),
        session_id: Some(SessionId::from(format!("s{}", n % 9).as_str())),
        provider_id: (!n.is_multiple_of(6)).then(|| ProviderId(1 + pick(3))),
        model: format!("model-{}", n % 3).into(),
        endpoint: if n.is_multiple_of(2) { "/v1/messages".into() } else { "/v1/responses".into() },
        status_code: status,
        outcome: match status {
            200 => RequestOutcome::Completed,
            429 if n.is_multiple_of(6) => RequestOutcome::Refused,
            _ => RequestOutcome::UpstreamFailed,
        },
        cost: (!n.is_multiple_of(11)).then(|| NanoUsd(1_000 + pick(1_000))),
        usage: Usage { input: n, output: n * 2, cache_read: n % 13, ..Usage::default() },
        duration_ms: n,
        attempts: u32::try_from(n % 4).unwrap(),
        ..bare_record()
    }
}
