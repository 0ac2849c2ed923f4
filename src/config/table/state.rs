//! The settings of data, credentials, sessions and accounting.

use super::{ADMIN_TOKEN_MIN, DAY, GIB, KIB, MIB, MIN, MS, S};
use crate::config::kind::Kind::{
    Choice, ChoiceOrFlag, Count, DatabaseUrl, Duration, File, Flag, Headers, Name, Networks, Path,
    RedisUrl, RedisUrls, Seconds, Secret, SecretFile, Size, Source, Zone,
};
use crate::config::kind::Zero::Refused;
use crate::config::setting::{Setting, setting, unset};
use crate::config::types::OnRedisLoss;
use crate::policy::reservation::Reservation;
use crate::policy::unpriced::Unpriced;

pub(super) const ROWS: &[Setting] = &[
    // Data.
    setting(
        "data_dir",
        Path,
        "data",
        "Folder of the embedded database, the journal and generated secrets.",
    ),
    unset("database.url", DatabaseUrl, "PostgreSQL address; unset = embedded SQLite in data_dir.")
        .variable_is("DATABASE_URL"),
    unset("database.url_file", SecretFile, "A file that holds database.url.")
        .variable_is("DATABASE_URL_FILE"),
    unset(
        "database.read_url",
        DatabaseUrl,
        "A standby of database.url that reports read from; unset = reports read from database.url.",
    ),
    unset("database.read_url_file", SecretFile, "A file that holds database.read_url."),
    setting(
        "database.max_connections",
        Count { min: 3, max: 1000 },
        "10",
        "Connections to PostgreSQL, one more for notifications, and as many again to the standby.",
    ),
    setting(
        "database.snapshot",
        Flag,
        "true",
        "Keep an encrypted snapshot of PostgreSQL in data_dir and start with it while the server \
         cannot be reached; needs auth.secret_key.",
    ),
    setting(
        "database.snapshot_max_age",
        Duration { min: MIN, max: 30 * DAY, zero: Refused },
        "3d",
        "Oldest snapshot that a start uses.",
    ),
    unset(
        "redis.url",
        RedisUrl,
        "Redis that all nodes count in; unset = each process counts for itself.",
    )
    .variable_is("REDIS_URL"),
    unset("redis.url_file", SecretFile, "A file that holds redis.url.")
        .variable_is("REDIS_URL_FILE"),
    unset(
        "redis.urls",
        RedisUrls,
        "Several Redis servers in place of redis.url: each counts a part of the users and providers. \
         The same list on all nodes.",
    )
    .variable_is("REDIS_URLS"),
    unset("redis.urls_file", SecretFile, "A file that holds redis.urls.")
        .variable_is("REDIS_URLS_FILE"),
    setting(
        "redis.cluster_parts",
        Count { min: 1, max: 32 },
        "3",
        "Into how many parts the counters of a Redis Cluster are divided, each on one primary: as \
         many as it has primaries. The same on all nodes.",
    ),
    unset(
        "redis.sentinel_password",
        Secret { min_len: 1 },
        "Password of the Sentinels in redis.url or redis.urls, if they ask for one.",
    ),
    unset("redis.sentinel_password_file", SecretFile, "A file that holds redis.sentinel_password."),
    unset(
        "redis.tls.ca",
        File,
        "Authorities (PEM) that may sign the certificate of Redis; unset = the public ones.",
    ),
    unset(
        "redis.tls.cert",
        File,
        "Certificate chain (PEM) to show to a Redis that asks for one; needs redis.tls.key.",
    ),
    unset("redis.tls.key", File, "Private key (PEM) for redis.tls.cert."),
    setting(
        "redis.prefix",
        Name,
        "tollgate",
        "Begins every name in Redis, so that gateways can share a server.",
    ),
    setting(
        "redis.timeout",
        Duration { min: MS, max: 10 * S, zero: Refused },
        "50ms",
        "Longest that a request waits for Redis; after that the node counts for itself until Redis \
         answers in time.",
    ),
    setting(
        "redis.lease",
        Duration { min: S, max: 10 * MIN, zero: Refused },
        "15s",
        "How long after a node's last heartbeat the amounts that its running requests reserved are \
         released.",
    ),
    // Credentials.
    unset(
        "auth.admin_token",
        Secret { min_len: ADMIN_TOKEN_MIN },
        "The administrator's credential; unset = generated at first start and kept in data_dir.",
    )
    .variable_is("ADMIN_TOKEN")
    .live(),
    unset(
        "auth.admin_token_file",
        SecretFile,
        "A file that holds auth.admin_token; a change takes effect at once.",
    )
    .variable_is("ADMIN_TOKEN_FILE")
    .live(),
    unset(
        "auth.secret_key",
        Secret { min_len: 16 },
        "Encrypts provider keys in the database; unset = generated at first start and kept in \
         data_dir.",
    )
    .variable_is("TOLLGATE_SECRET_KEY")
    .live(),
    unset(
        "auth.secret_key_file",
        SecretFile,
        "A file that holds auth.secret_key; a change takes effect at once.",
    )
    .variable_is("TOLLGATE_SECRET_KEY_FILE")
    .live(),
    unset(
        "auth.secret_key_previous",
        Secret { min_len: 16 },
        "Still opens what it encrypted, until `tollgate secret rotate` has encrypted everything \
         with auth.secret_key.",
    )
    .variable_is("TOLLGATE_SECRET_KEY_PREVIOUS")
    .live(),
    unset(
        "auth.secret_key_previous_file",
        SecretFile,
        "A file that holds auth.secret_key_previous.",
    )
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
        "Keep what clients send and get, for administrators and the key's user to read. Who may \
         read the database may read it too.",
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
        "How much is kept in all; beyond it the oldest go. All go after the retention of the \
         system settings.",
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
    setting(
        "ledger.batch_rows",
        Count { min: 1, max: 10_000 },
        "500",
        "Records written in one transaction.",
    ),
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
        "Time between two syncs of the journal: with the time of a sync itself, the most that a \
         power failure takes.",
    ),
    setting(
        "limits.reservation",
        ChoiceOrFlag { names: Reservation::NAMES, yes: "expected", no: "off" },
        "expected",
        "What running requests count against limits: expected = their usual cost, strict = the \
         most they can cost, off = nothing.",
    ),
    setting(
        "limits.on_redis_loss",
        Choice(OnRedisLoss::NAMES),
        "local",
        "While Redis is lost: local = go on with this node's own counters, open = let all pass, \
         closed = refuse.",
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
        "Requests for models without a price: serve them for nothing, refuse them to keys with a \
         money limit, or refuse them.",
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
    setting("time_zone", Zone, "UTC", "IANA time zone of daily, weekly and monthly limits.")
        .variable_is("TZ"),
];
