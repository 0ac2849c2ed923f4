//! All settings, as one table: path, kind with bounds, default, environment variable, reload,
//! meaning.
//!
//! Parsing, environment, validation, printing, reload and the test of the documented file all read
//! this table. A new setting is a row here, a field in `types`, its line in `build`, and its entry
//! in `conf/tollgate.yaml`.

use super::kind::Kind::{
    Address, Choice, ChoiceOrFlag, Count, DatabaseUrl, Duration, File, Flag, FlagOrAuto, Headers,
    Name, Networks, Origin, Path, RedisUrl, Seconds, Secret, SecretFile, Size, Source, Zone,
};
use super::kind::Zero::{MeansNone, Refused};
use super::setting::{Setting, setting, unset};
use super::telemetry;
use super::types::{LogFormat, OnAbort, OnRedisLoss};
use crate::policy::reservation::Reservation;
use crate::policy::unpriced::Unpriced;

const MS: u64 = 1;
const S: u64 = 1_000 * MS;
const MIN: u64 = 60 * S;
const HOUR: u64 = 60 * MIN;
const DAY: u64 = 24 * HOUR;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Minimum length of the admin token, in characters: shorter ones could be guessed.
pub const ADMIN_TOKEN_MIN: usize = 16;

const PROVIDER_HEADERS: &[&str] = &["hide", "pass"];
const LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];

/// The table, in the order of the documented file.
pub const SETTINGS: &[Setting] = &joined();

/// The rows of this file, and those of `telemetry`.
const fn joined() -> [Setting; ROWS.len() + telemetry::ROWS.len()] {
    let mut all = [ROWS[0]; ROWS.len() + telemetry::ROWS.len()];
    let mut place = 0;
    while place < all.len() {
        all[place] =
            if place < ROWS.len() { ROWS[place] } else { telemetry::ROWS[place - ROWS.len()] };
        place += 1;
    }
    all
}

const ROWS: &[Setting] = &[
    // Clients' listener.
    setting("proxy.addr", Address, "0.0.0.0:8080", "Where clients of the models connect."),
    unset("proxy.tls.cert", File, "Certificate chain (PEM) for the proxy listener; needs proxy.tls.key."),
    unset("proxy.tls.key", File, "Private key (PEM) for proxy.tls.cert."),
    setting("proxy.h2c", Flag, "false", "Accept HTTP/2 without TLS. With TLS, HTTP/2 is always offered."),
    setting("proxy.threads", Count { min: 0, max: 1024 }, "0", "Worker threads of the proxy; 0 = one per core."),
    setting("proxy.expose_admin", Flag, "false", "Serve the administration API and web UI here as well."),
    setting(
        "proxy.upstream_pool_size",
        Count { min: 1, max: 65_536 },
        "512",
        "Idle upstream connections kept for reuse, over all providers.",
    ),
    unset(
        "proxy.upgrade_socket",
        Path,
        "Socket over which `serve --upgrade` takes over the listeners; unset = upgrade.sock in data_dir.",
    ),
    setting(
        "proxy.max_body_bytes",
        Size { min: KIB, max: GIB },
        "32MiB",
        "Largest request body, before and after decompression; beyond it clients get 413.",
    )
    .live(),
    setting(
        "proxy.max_inflight_body_bytes",
        Size { min: KIB, max: 1024 * GIB },
        "1GiB",
        "Bytes of request bodies held at once (one user alone: half of it); beyond it clients get 503 with `Retry-After`.",
    )
    .live(),
    setting(
        "proxy.max_json_depth",
        Count { min: 8, max: 512 },
        "128",
        "Deepest nesting of a JSON request; beyond it clients get 400.",
    )
    .live(),
    setting(
        "proxy.request_read_timeout",
        Duration { min: S, max: HOUR, zero: MeansNone },
        "2m",
        "Time a client has to send its whole request body.",
    )
    .live(),
    setting(
        "proxy.reply_write_timeout",
        Duration { min: S, max: HOUR, zero: MeansNone },
        "5m",
        "Time a client has to take each part of its reply (64 KiB at most) before it counts as gone.",
    )
    .live(),
    setting(
        "proxy.keepalive_timeout",
        Duration { min: S, max: HOUR, zero: Refused },
        "60s",
        "Time that a client's HTTP/1 connection is kept without a request.",
    )
    .live(),
    setting(
        "proxy.head_timeout",
        Duration { min: S, max: HOUR, zero: MeansNone },
        "30s",
        "Time from the first to the last byte of a request's head; beyond it clients get 408, or over HTTP/2 a closed connection.",
    )
    .live(),
    setting(
        "proxy.max_head_bytes",
        Size { min: 4 * KIB, max: MIB },
        "64KiB",
        "Largest head of a request; beyond it clients get 431. For HTTP/2 a change needs a restart.",
    )
    .live(),
    setting(
        "proxy.max_connections",
        Count { min: 0, max: 1_000_000 },
        "10000",
        "Connections of clients at once; beyond it new ones get 503 and are closed. 0 = no limit.",
    )
    .live(),
    setting(
        "proxy.max_connections_per_address",
        Count { min: 0, max: 1_000_000 },
        "2500",
        "Connections of one address (IPv6: one /64) at once, trusted_proxies excepted. 0 = no limit.",
    )
    .live(),
    setting(
        "proxy.keepalive_requests",
        Count { min: 0, max: 1_000_000_000 },
        "10000",
        "Requests on one HTTP/1 connection before it is closed, with notice. 0 = no limit.",
    )
    .live(),
    setting(
        "proxy.abort",
        Choice(OnAbort::NAMES),
        "cancel",
        "When a client leaves: cancel = stop the provider and bill an estimate, drain = read its reply and bill that.",
    )
    .live(),
    setting(
        "proxy.abort_drain",
        Duration { min: S, max: HOUR, zero: Refused },
        "30s",
        "With proxy.abort: drain, the time that the rest of a reply may take.",
    )
    .live(),
    setting(
        "proxy.abort_drain_bytes",
        Size { min: KIB, max: GIB },
        "16MiB",
        "With proxy.abort: drain, the bytes that the rest of a reply may have.",
    )
    .live(),
    setting("proxy.overhead_header", Flag, "false", "Tell clients in `server-timing` how long the gateway took.")
        .live(),
    setting(
        "proxy.provider_headers",
        Choice(PROVIDER_HEADERS),
        "hide",
        "Reply headers of a provider's account (its limits, organisation, edge): hide = clients do not get them, pass = they do.",
    )
    .live(),
    // Administration.
    setting("admin.addr", Address, "127.0.0.1:8081", "Where the administration API and the web UI are served."),
    setting(
        "admin.max_connections",
        Count { min: 0, max: 1_000_000 },
        "1024",
        "Connections to the administration at once; beyond it new ones get 503 and are closed. 0 = no limit.",
    )
    .live(),
    setting(
        "admin.max_connections_per_address",
        Count { min: 0, max: 1_000_000 },
        "256",
        "Connections of one address (IPv6: one /64) to the administration at once, trusted_proxies excepted. 0 = no limit.",
    )
    .live(),
    unset("admin.tls.cert", File, "Certificate chain (PEM) for the admin listener; needs admin.tls.key."),
    unset("admin.tls.key", File, "Private key (PEM) for admin.tls.cert."),
    unset("admin.app_url", Origin, "The address people type to reach the web UI, when it is not the listener's.")
        .variable_is("APP_URL"),
    setting(
        "admin.secure_cookies",
        FlagOrAuto,
        "auto",
        "Send login cookies over HTTPS only; auto = when admin.tls or an https admin.app_url is set.",
    )
    .variable_is("ENABLE_SECURE_COOKIES"),
    setting(
        "trusted_proxies",
        Networks,
        "",
        "Reverse proxies in front of the gateway: only from these the client's address is read from X-Forwarded-For or Forwarded.",
    )
    .live(),
    setting("metrics.addr", Address, "127.0.0.1:9464", "Where /metrics, /livez and /readyz are served."),
    setting(
        "metrics.per_user",
        Flag,
        "false",
        "Metrics of requests, tokens and cost for each user: the first 200 that send a request, the rest as `other`.",
    ),
    setting(
        "metrics.per_key",
        Flag,
        "false",
        "Metrics of requests, tokens and cost for each key: the first 200 that send a request, the rest as `other`.",
    ),
    // Data.
    setting("data_dir", Path, "data", "Folder of the embedded database, the journal and generated secrets."),
    unset("database.url", DatabaseUrl, "PostgreSQL address; unset = embedded SQLite in data_dir.")
        .variable_is("DATABASE_URL"),
    unset("database.url_file", SecretFile, "A file that holds database.url.").variable_is("DATABASE_URL_FILE"),
    setting("database.max_connections", Count { min: 1, max: 1000 }, "10", "Connections to PostgreSQL."),
    unset("redis.url", RedisUrl, "Redis that all nodes count in; unset = each process counts for itself.")
        .variable_is("REDIS_URL"),
    unset("redis.url_file", SecretFile, "A file that holds redis.url.").variable_is("REDIS_URL_FILE"),
    unset("redis.tls.ca", File, "Authorities (PEM) that may sign the certificate of Redis; unset = the public ones."),
    unset("redis.tls.cert", File, "Certificate chain (PEM) to show to a Redis that asks for one; needs redis.tls.key."),
    unset("redis.tls.key", File, "Private key (PEM) for redis.tls.cert."),
    setting("redis.prefix", Name, "tollgate", "Begins every name in Redis, so that gateways can share a server."),
    setting(
        "redis.timeout",
        Duration { min: MS, max: 10 * S, zero: Refused },
        "50ms",
        "Longest that a request waits for Redis; after that the node counts for itself until Redis answers in time.",
    ),
    setting(
        "redis.lease",
        Duration { min: S, max: 10 * MIN, zero: Refused },
        "15s",
        "How long after a node's last heartbeat the amounts that its running requests reserved are released.",
    ),
    // Credentials.
    unset(
        "auth.admin_token",
        Secret { min_len: ADMIN_TOKEN_MIN },
        "The administrator's credential; unset = generated at first start and kept in data_dir.",
    )
    .variable_is("ADMIN_TOKEN")
    .live(),
    unset("auth.admin_token_file", SecretFile, "A file that holds auth.admin_token; a change takes effect at once.")
        .variable_is("ADMIN_TOKEN_FILE")
        .live(),
    unset(
        "auth.secret_key",
        Secret { min_len: 16 },
        "Encrypts provider keys in the database; unset = generated at first start and kept in data_dir.",
    )
    .variable_is("TOLLGATE_SECRET_KEY")
    .live(),
    unset("auth.secret_key_file", SecretFile, "A file that holds auth.secret_key; a change takes effect at once.")
        .variable_is("TOLLGATE_SECRET_KEY_FILE")
        .live(),
    unset(
        "auth.secret_key_previous",
        Secret { min_len: 16 },
        "Still opens what it encrypted, until `tollgate secret rotate` has encrypted everything with auth.secret_key.",
    )
    .variable_is("TOLLGATE_SECRET_KEY_PREVIOUS")
    .live(),
    unset("auth.secret_key_previous_file", SecretFile, "A file that holds auth.secret_key_previous.")
        .variable_is("TOLLGATE_SECRET_KEY_PREVIOUS_FILE")
        .live(),
    setting(
        "auth.alt_key_headers",
        Headers,
        "x-alt-api-key, x-goog-api-key",
        "Headers that may carry an API key, beside authorization and x-api-key.",
    ),
    // Sessions.
    setting(
        "session.ttl",
        Seconds { min: S, max: 7 * DAY },
        "5m",
        "How long after its last request a session stays with its provider and counts as live.",
    )
    .variable_is("SESSION_TTL"),
    setting(
        "session.headers",
        Headers,
        "x-session-id, session_id, session-id, x-claude-code-session-id",
        "Headers that may name a session, the first found wins.",
    ),
    setting(
        "session.store_messages",
        Flag,
        "false",
        "Keep what clients send and get, for administrators and the key's user to read. Who may read the database may read it too.",
    )
    .variable_is("STORE_SESSION_MESSAGES"),
    setting(
        "session.message_bytes",
        Size { min: KIB, max: 16 * MIB },
        "256KiB",
        "How much of each request and of each reply is kept.",
    ),
    setting(
        "session.messages_total_bytes",
        Size { min: MIB, max: 1024 * GIB },
        "1GiB",
        "How much is kept in all; beyond it the oldest go. All go after the retention of the system settings.",
    ),
    // Accounting.
    setting(
        "ledger.segment_bytes",
        Size { min: 64 * KIB, max: GIB },
        "64MiB",
        "Size at which the journal begins a new file.",
    ),
    setting(
        "ledger.max_bytes",
        Size { min: MIB, max: 1024 * GIB },
        "4GiB",
        "Journal bytes that may wait for the database; beyond it new requests are refused.",
    ),
    setting("ledger.batch_rows", Count { min: 1, max: 10_000 }, "500", "Records written in one transaction."),
    setting(
        "ledger.flush_interval",
        Duration { min: MS, max: MIN, zero: Refused },
        "200ms",
        "Longest wait before an incomplete batch is written.",
    ),
    setting(
        "ledger.sync_interval",
        Duration { min: MS, max: MIN, zero: Refused },
        "1s",
        "Time between two syncs of the journal: with the time of a sync itself, the most that a power failure takes.",
    ),
    setting(
        "limits.reservation",
        ChoiceOrFlag { names: Reservation::NAMES, yes: "expected", no: "off" },
        "expected",
        "What running requests count against limits: expected = their usual cost, strict = the most they can cost, off = nothing.",
    ),
    setting(
        "limits.on_redis_loss",
        Choice(OnRedisLoss::NAMES),
        "local",
        "While Redis is lost: local = go on with this node's own counters, open = let all pass, closed = refuse.",
    ),
    unset("prices.seed_file", File, "Price table for an empty database; unset = the built-in one."),
    setting(
        "prices.sync_url",
        Source,
        "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json",
        "The price list that a sync fetches, in the public list's form.",
    ),
    setting(
        "prices.unpriced",
        Choice(Unpriced::NAMES),
        "serve",
        "Requests for models without a price: serve them for nothing, refuse them to keys with a money limit, or refuse them.",
    )
    .live(),
    setting(
        "webhooks.allow_private",
        Networks,
        "",
        "Networks that webhooks may be sent to although they are not public.",
    ),
    unset(
        "instructions.short_file",
        File,
        "Official instructions for coding models of responses providers (by strategy).",
    ),
    unset(
        "instructions.long_file",
        File,
        "Official instructions for other models of responses providers (by strategy).",
    ),
    setting("time_zone", Zone, "UTC", "IANA time zone of daily, weekly and monthly limits.").variable_is("TZ"),
    // Requests upstream.
    setting(
        "timeouts.connect",
        Duration { min: 10 * MS, max: 5 * MIN, zero: Refused },
        "10s",
        "Connecting to a provider, TLS included.",
    )
    .live(),
    setting(
        "timeouts.tls",
        Duration { min: 10 * MS, max: 5 * MIN, zero: Refused },
        "5s",
        "The TLS handshake alone, within timeouts.connect.",
    )
    .live(),
    setting(
        "timeouts.first_byte_streaming",
        Duration { min: 10 * MS, max: HOUR, zero: MeansNone },
        "1m",
        "From a streaming request sent to the first event of its reply. Providers may set their own.",
    )
    .live(),
    setting(
        "timeouts.streaming_idle",
        Duration { min: 10 * MS, max: HOUR, zero: MeansNone },
        "2m",
        "Longest silence within a streamed reply. Providers may set their own.",
    )
    .live(),
    setting(
        "timeouts.request_non_streaming",
        Duration { min: 10 * MS, max: DAY, zero: MeansNone },
        "10m",
        "A whole exchange that is not streamed. Providers may set their own.",
    )
    .live(),
    setting(
        "timeouts.upstream_keepalive",
        Duration { min: S, max: HOUR, zero: MeansNone },
        "90s",
        "How long an idle upstream connection is kept for reuse; 0 = as long as the provider keeps it.",
    )
    .live(),
    setting(
        "retry.deadline",
        Duration { min: 100 * MS, max: HOUR, zero: Refused },
        "1m",
        "From a request's arrival to the first byte of its reply, over all attempts.",
    )
    .live(),
    setting(
        "retry.switch_on_upstream_auth",
        Flag,
        "false",
        "Try another provider when one says that its key or its account is no good.",
    )
    .live(),
    setting(
        "retry.max_cooldown",
        Duration { min: S, max: DAY, zero: Refused },
        "10m",
        "Longest cooldown that a provider's `Retry-After` can request.",
    )
    .live(),
    setting(
        "breaker.count_network_errors",
        Flag,
        "true",
        "Let refused, reset and timed-out connections open a provider's circuit, as its error replies do.",
    )
    .live(),
    setting(
        "breaker.disable_after_failed_probes",
        Count { min: 0, max: 1000 },
        "0",
        "Disable a provider once so many probes of its open circuit failed in a row, unless it is the last one; 0 = never.",
    )
    .live(),
    setting("headers.drop_request", Headers, "", "Request headers not passed on to providers.").live(),
    setting("headers.drop_response", Headers, "", "Reply headers not passed back to clients.").live(),
    // The process.
    setting("log.level", Choice(LEVELS), "info", "Least important lines that are written.")
        .variable_is("LOG_LEVEL")
        .live(),
    setting("log.format", Choice(LogFormat::NAMES), "auto", "text, json, or auto: text on a terminal, else json.")
        .variable_is("LOG_FORMAT"),
    setting("log.access", Flag, "true", "Write one line per request, without bodies and credentials."),
    setting(
        "shutdown.grace",
        Duration { min: S, max: HOUR, zero: MeansNone },
        "1m",
        "How long running replies may go on after a stop was asked for.",
    ),
];

/// The row of a path.
#[must_use]
pub(super) fn find(path: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.path == path)
}
