-- Everything that administrators set: users, keys, providers, prices, words, rules, settings; and who did what.
-- Times are milliseconds since the Unix epoch, money is billionths of a US dollar, flags are 0 or 1, lists and objects are JSON text.

CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    note TEXT NOT NULL DEFAULT '',
    role TEXT NOT NULL DEFAULT 'user' CHECK (role IN ('admin', 'user')),
    is_enabled INTEGER NOT NULL DEFAULT 1,
    expires_at INTEGER,
    rpm INTEGER NOT NULL DEFAULT 0,
    limit_five_hours INTEGER,
    limit_daily INTEGER,
    limit_weekly INTEGER,
    limit_monthly INTEGER,
    limit_total INTEGER,
    limit_concurrent_sessions INTEGER NOT NULL DEFAULT 0,
    daily_reset_mode TEXT NOT NULL DEFAULT 'fixed',
    daily_reset_time TEXT NOT NULL DEFAULT '00:00',
    provider_group TEXT NOT NULL DEFAULT '',
    tags TEXT NOT NULL DEFAULT '[]',
    allowed_models TEXT NOT NULL DEFAULT '[]',
    allowed_clients TEXT NOT NULL DEFAULT '[]',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
);

CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    -- SHA-256 of the key text, which is nowhere kept
    hash BLOB NOT NULL,
    prefix TEXT NOT NULL,
    last_four TEXT NOT NULL,
    is_enabled INTEGER NOT NULL DEFAULT 1,
    expires_at INTEGER,
    can_login_web_ui INTEGER NOT NULL DEFAULT 0,
    limit_five_hours INTEGER,
    limit_daily INTEGER,
    limit_weekly INTEGER,
    limit_monthly INTEGER,
    limit_total INTEGER,
    limit_concurrent_sessions INTEGER NOT NULL DEFAULT 0,
    daily_reset_mode TEXT NOT NULL DEFAULT 'fixed',
    daily_reset_time TEXT NOT NULL DEFAULT '00:00',
    provider_group TEXT NOT NULL DEFAULT '',
    cache_ttl TEXT NOT NULL DEFAULT 'inherit',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
);
CREATE UNIQUE INDEX api_keys_hash ON api_keys (hash);
-- a name is unique among a user's keys that are not deleted
CREATE UNIQUE INDEX api_keys_name ON api_keys (user_id, name) WHERE deleted_at IS NULL;

CREATE TABLE providers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    -- the upstream credential, sealed; never plain
    key_cipher TEXT NOT NULL,
    kind TEXT NOT NULL,
    is_enabled INTEGER NOT NULL DEFAULT 1,
    weight INTEGER NOT NULL DEFAULT 1,
    priority INTEGER NOT NULL DEFAULT 0,
    cost_multiplier TEXT NOT NULL DEFAULT '1',
    group_tag TEXT NOT NULL DEFAULT '',
    allowed_models TEXT NOT NULL DEFAULT '[]',
    model_redirects TEXT NOT NULL DEFAULT '[]',
    limit_five_hours INTEGER,
    limit_daily INTEGER,
    limit_weekly INTEGER,
    limit_monthly INTEGER,
    limit_total INTEGER,
    limit_concurrent_sessions INTEGER NOT NULL DEFAULT 0,
    daily_reset_mode TEXT NOT NULL DEFAULT 'fixed',
    daily_reset_time TEXT NOT NULL DEFAULT '00:00',
    max_retry_attempts INTEGER NOT NULL DEFAULT 2,
    breaker_failure_threshold INTEGER NOT NULL DEFAULT 5,
    breaker_open_duration_ms INTEGER NOT NULL DEFAULT 1800000,
    breaker_half_open_successes INTEGER NOT NULL DEFAULT 2,
    first_byte_streaming_ms INTEGER,
    streaming_idle_ms INTEGER,
    request_non_streaming_ms INTEGER,
    cache_ttl TEXT NOT NULL DEFAULT 'inherit',
    instructions TEXT NOT NULL DEFAULT 'keep_original',
    preserve_client_ip INTEGER NOT NULL DEFAULT 0,
    proxy_url TEXT,
    note TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
);

CREATE TABLE model_prices (
    model TEXT NOT NULL PRIMARY KEY,
    source TEXT NOT NULL,
    -- the entry as it was uploaded
    data TEXT NOT NULL,
    -- the rates that were read from it: decimals as JSON strings
    rates TEXT NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE TABLE sensitive_words (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    word TEXT NOT NULL,
    match_type TEXT NOT NULL CHECK (match_type IN ('contains', 'exact', 'regex')),
    description TEXT NOT NULL DEFAULT '',
    is_enabled INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE TABLE error_rules (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pattern TEXT NOT NULL,
    match_type TEXT NOT NULL CHECK (match_type IN ('contains', 'exact', 'regex')),
    category TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    -- lower is tried first
    priority INTEGER NOT NULL DEFAULT 0,
    override_status INTEGER,
    override_body TEXT,
    is_enabled INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

-- the two settings tables hold one row each: a JSON object whose absent fields mean the default
CREATE TABLE system_settings (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    data TEXT NOT NULL
);

CREATE TABLE notification_settings (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    data TEXT NOT NULL,
    -- the key that webhooks are signed with, sealed
    secret_cipher TEXT
);

-- rises with every committed change of the tables above, so that a node sees at a glance whether it is up to date
CREATE TABLE config_version (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL
);
INSERT INTO config_version (id, version) VALUES (1, 0);

CREATE TABLE web_sessions (
    -- SHA-256 of the cookie's value
    hash BLOB NOT NULL PRIMARY KEY,
    -- both null: the admin token
    key_id INTEGER REFERENCES api_keys (id),
    user_id INTEGER REFERENCES users (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX web_sessions_key ON web_sessions (key_id);
CREATE INDEX web_sessions_user ON web_sessions (user_id);
CREATE INDEX web_sessions_expiry ON web_sessions (expires_at);

CREATE TABLE audit_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    happened_at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    state_before TEXT,
    state_after TEXT,
    client_addr TEXT
);
CREATE INDEX audit_log_time ON audit_log (happened_at);
