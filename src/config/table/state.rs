//! The settings of data, credentials, sessions and accounting.

use super::{ADMIN_TOKEN_MIN, DAY, GIB, KIB, MIB, MIN, MS, S};
use crate::config::kind::SettingKind::{
    Choice, Count, DatabaseUrl, Duration, File, Flag, Headers, Name, Networks, Path, Ratio,
    RedisUrl, Seconds, Secret, SecretFile, Size, Source, Zone,
};
use crate::config::kind::Zero::Refused;
use crate::config::setting::{Setting, setting, unset};
use crate::config::types::OnRedisLoss;
use crate::policy::reservation::Reservation;
use crate::policy::unpriced::Unpriced;

pub(super) const ROWS: &[Setting] = &[
    // Data.
    setting("data_dir", Path, "data"),
    unset("database.url", DatabaseUrl).variable_is("DATABASE_URL"),
    unset("database.url_file", SecretFile).variable_is("DATABASE_URL_FILE"),
    unset("database.read_url", DatabaseUrl),
    unset("database.read_url_file", SecretFile),
    setting("database.max_connections", Count { min: 3, max: 1000 }, "10"),
    setting("database.snapshot", Flag, "true"),
    setting("database.snapshot_max_age", Duration { min: MIN, max: 30 * DAY, zero: Refused }, "3d"),
    unset("redis.url", RedisUrl).variable_is("REDIS_URL"),
    unset("redis.url_file", SecretFile).variable_is("REDIS_URL_FILE"),
    unset("redis.sentinel_password", Secret { min_len: 1 }),
    unset("redis.sentinel_password_file", SecretFile),
    unset("redis.tls.ca", File),
    unset("redis.tls.cert", File),
    unset("redis.tls.key", File),
    setting("redis.prefix", Name, "tollgate"),
    setting("redis.timeout", Duration { min: MS, max: 10 * S, zero: Refused }, "50ms"),
    setting("redis.lease", Duration { min: S, max: 10 * MIN, zero: Refused }, "15s"),
    // Credentials.
    unset("auth.admin_token", Secret { min_len: ADMIN_TOKEN_MIN })
        .variable_is("ADMIN_TOKEN")
        .live(),
    unset("auth.admin_token_file", SecretFile).variable_is("ADMIN_TOKEN_FILE").live(),
    unset("auth.secret_key", Secret { min_len: 16 }).variable_is("TOLLGATE_SECRET_KEY").live(),
    unset("auth.secret_key_file", SecretFile).variable_is("TOLLGATE_SECRET_KEY_FILE").live(),
    unset("auth.secret_key_previous", Secret { min_len: 16 })
        .variable_is("TOLLGATE_SECRET_KEY_PREVIOUS")
        .live(),
    unset("auth.secret_key_previous_file", SecretFile)
        .variable_is("TOLLGATE_SECRET_KEY_PREVIOUS_FILE")
        .live(),
    setting("auth.alt_key_headers", Headers, "x-alt-api-key, x-goog-api-key"),
    // Sessions.
    setting("session.ttl", Seconds { min: S, max: 7 * DAY }, "5m").variable_is("SESSION_TTL"),
    setting(
        "session.headers",
        Headers,
        "x-session-id, session_id, session-id, x-claude-code-session-id",
    ),
    setting("session.store_messages", Flag, "false").variable_is("STORE_SESSION_MESSAGES"),
    setting("session.message_bytes", Size { min: KIB, max: 16 * MIB }, "256KiB"),
    setting("session.messages_total_bytes", Size { min: MIB, max: 1024 * GIB }, "1GiB"),
    setting("session.explain_cache_misses", Flag, "true").live(),
    setting("session.cache_diagnosis", Ratio, "0").live(),
    // Accounting.
    setting("ledger.segment_bytes", Size { min: 64 * KIB, max: GIB }, "64MiB"),
    setting("ledger.max_bytes", Size { min: MIB, max: 1024 * GIB }, "4GiB"),
    unset("ledger.batch_rows", Count { min: 1, max: 10_000 }),
    setting("ledger.flush_interval", Duration { min: MS, max: MIN, zero: Refused }, "200ms"),
    setting("ledger.sync_interval", Duration { min: MS, max: MIN, zero: Refused }, "1s"),
    setting("limits.reservation", Choice(Reservation::NAMES), "expected"),
    setting("limits.on_redis_loss", Choice(OnRedisLoss::NAMES), "local"),
    unset("prices.seed_file", File),
    setting(
        "prices.sync_url",
        Source,
        "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json",
    ),
    setting("prices.sync", Choice(&["daily", "off"]), "daily").live(),
    setting("prices.unpriced", Choice(Unpriced::NAMES), "refuse_when_limited").live(),
    setting("webhooks.allow_private", Networks, ""),
    unset("instructions.short_file", File),
    unset("instructions.long_file", File),
    setting("time_zone", Zone, "UTC").variable_is("TZ"),
];
