-- The schema. Times are milliseconds since the Unix epoch, money is billionths of a US dollar, flags are 0 or 1, lists
-- and objects are JSON text.
--
-- Once 0.1.0 is released, this file is never changed: its checksum is in every database. A column is added by a
-- migration of its own (ARCHITECTURE.md, "A migration"). Until then, columns are added here, as the last of their table.

-- What administrators set: users, keys, providers, prices, words, rules, settings; and who did what.

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
    deleted_at INTEGER,
    -- the limits of the user's keys are changed by administrators only
    lock_key_limits INTEGER NOT NULL DEFAULT 0,
    -- how many keys a user may have had, deleted ones included, to add one; null: none if the limits of
    -- the user's keys are locked
    max_keys INTEGER
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
    deleted_at INTEGER,
    -- Attempts before this time say nothing about the provider as it is now: its address, credential or
    -- proxy was changed then, or it was enabled again.
    health_since INTEGER NOT NULL DEFAULT 0,
    -- why and when the gateway itself disabled the provider, as JSON; null when it did not
    switched_off TEXT,
    -- milliseconds without content in a stream that only sends signs of life; null = as configured, 0 = none
    streaming_content_ms INTEGER
);

CREATE TABLE model_prices (
    model TEXT NOT NULL PRIMARY KEY,
    source TEXT NOT NULL,
    -- the entry as it was uploaded; rates are read from it
    data TEXT NOT NULL,
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
    updated_at INTEGER NOT NULL,
    -- what a rule of the program's own is known by in every version; null for an operator's
    builtin_code TEXT,
    -- rises when the program's own text of the rule changes
    builtin_revision INTEGER NOT NULL DEFAULT 0,
    -- an operator has changed it: upgrades leave it alone
    is_edited INTEGER NOT NULL DEFAULT 0,
    applies_to TEXT NOT NULL DEFAULT '4xx',
    -- a removed rule of the program's own is kept, so that no upgrade brings it back
    deleted_at INTEGER
);
CREATE UNIQUE INDEX error_rules_builtin ON error_rules (builtin_code);

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
    expires_at INTEGER NOT NULL,
    -- Of a login with the admin token: what ties it to that token. It ends when the token changes.
    token_check BLOB
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
-- read newest first, often for one target
CREATE INDEX audit_log_target ON audit_log (target, id);

-- Which versions of known clients were seen.
CREATE TABLE client_versions (
    client TEXT NOT NULL,
    version TEXT NOT NULL,
    user_id INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    PRIMARY KEY (client, version, user_id)
);

-- Which secret key new texts are sealed with (the key's id, not the key): `tollgate secret rotate` sets it when it seals all texts anew.
CREATE TABLE sealing_key (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    key_id TEXT NOT NULL
);

-- Work that one node at a time does for all: cleaning up, pricing afterwards, daily reports.
CREATE TABLE jobs (
    name TEXT NOT NULL PRIMARY KEY,
    -- the node that has the job, and until when nobody else may take it
    holder TEXT NOT NULL,
    held_until INTEGER NOT NULL,
    -- the due time that was last served
    done_for INTEGER NOT NULL,
    -- what the last or the running turn says of itself: JSON
    report TEXT NOT NULL
);

-- Messages that are not to be sent twice, by any node, before they are due again.
CREATE TABLE sent_notices (
    name TEXT NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
);

-- What requests cost. The ledger and its hourly sums are permanent; the request log is wide and may be pruned from its old end.
-- Written without foreign keys: a record outlives what it names.

-- Sums of the ledger per hour (UTC) and all that statistics and the log's totals ask by. An id of 0 means none.
CREATE TABLE hourly_sums (
    hour INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    provider_id INTEGER NOT NULL,
    model TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    status_code INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cache_write_5m_tokens INTEGER NOT NULL,
    cache_write_1h_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    PRIMARY KEY (hour, key_id, user_id, provider_id, model, endpoint, status_code)
);
CREATE INDEX hourly_sums_key ON hourly_sums (key_id, hour);
CREATE INDEX hourly_sums_user ON hourly_sums (user_id, hour);
CREATE INDEX hourly_sums_provider ON hourly_sums (provider_id, hour);
CREATE INDEX hourly_sums_model ON hourly_sums (model, hour);

-- One wide row per request, for people. Each index ends in the order of the pages: time, then row (which
-- SQLite appends to every index by itself).
CREATE TABLE request_log (
    id INTEGER PRIMARY KEY,
    request_id BLOB NOT NULL,
    started_at INTEGER NOT NULL,
    key_id INTEGER,
    key_name TEXT,
    user_id INTEGER,
    user_name TEXT,
    session_id TEXT,
    provider_id INTEGER,
    provider_name TEXT,
    client_format TEXT NOT NULL,
    provider_format TEXT,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    upstream_model TEXT,
    streamed INTEGER NOT NULL,
    status_code INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    error_message TEXT,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cache_write_5m_tokens INTEGER NOT NULL,
    cache_write_1h_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    image_input_tokens INTEGER NOT NULL,
    image_output_tokens INTEGER NOT NULL,
    -- null: no price was known for the model
    cost INTEGER,
    cost_multiplier TEXT NOT NULL,
    estimated INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    first_byte_ms INTEGER,
    overhead_us INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    decisions TEXT NOT NULL,
    user_agent TEXT,
    client_addr TEXT,
    -- What the request used that most do not: null where there is none of it, else JSON with those of `audioInput`,
    -- `audioOutput`, `webSearches` and `tier` that are not 0 or `standard`.
    usage_extra TEXT,
    -- the entry that priced the request, where it is not the one of the model that was asked for
    price_model TEXT,
    -- A request counts at the time of its admission: that is `started_at`, here and in the ledger. Its head came this
    -- much earlier; null: at the same time.
    admitted_ms INTEGER
);
-- The few requests that took more than two attempts are found by their number: else a search for them would read all that
-- took two.
CREATE INDEX request_log_attempts ON request_log (attempts, started_at) WHERE attempts > 2;
CREATE INDEX request_log_endpoint ON request_log (endpoint, started_at);
-- most requests succeed: only the others are worth an entry
CREATE INDEX request_log_failed ON request_log (status_code, started_at) WHERE status_code <> 200;
CREATE INDEX request_log_key ON request_log (key_id, started_at);
CREATE INDEX request_log_key_not_ok ON request_log (key_id, started_at, id) WHERE status_code <> 200;
CREATE INDEX request_log_model ON request_log (model, started_at);
CREATE INDEX request_log_not_ok ON request_log (started_at) WHERE status_code <> 200;
CREATE INDEX request_log_provider ON request_log (provider_id, started_at);
CREATE INDEX request_log_retried ON request_log (started_at) WHERE attempts > 1;
CREATE INDEX request_log_session ON request_log (session_id, started_at);
CREATE INDEX request_log_time ON request_log (started_at);
CREATE INDEX request_log_user ON request_log (user_id, started_at);
CREATE INDEX request_log_user_not_ok ON request_log (user_id, started_at, id) WHERE status_code <> 200;
-- A user's retried requests: a report of them reads none of the user's other requests.
CREATE INDEX request_log_user_retried ON request_log (user_id, started_at) WHERE attempts > 1;
CREATE UNIQUE INDEX request_log_request ON request_log (request_id);
-- What awaits a price is found by the model that was asked for, and by the one that the provider was asked for.
CREATE INDEX request_log_unpriced ON request_log (model, upstream_model) WHERE cost IS NULL;

-- The log's row of a request is the ledger's too. This table has the rows of requests that the log has no more.
CREATE TABLE ledger_archive (
    request_id BLOB NOT NULL PRIMARY KEY,
    started_at INTEGER NOT NULL,
    key_id INTEGER,
    user_id INTEGER,
    provider_id INTEGER,
    model TEXT NOT NULL,
    upstream_model TEXT,
    endpoint TEXT NOT NULL,
    status_code INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cache_write_5m_tokens INTEGER NOT NULL,
    cache_write_1h_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    image_input_tokens INTEGER NOT NULL,
    image_output_tokens INTEGER NOT NULL,
    usage_extra TEXT,
    price_model TEXT,
    cost INTEGER,
    cost_multiplier TEXT NOT NULL,
    estimated INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX ledger_archive_key ON ledger_archive (key_id, started_at);
CREATE INDEX ledger_archive_time ON ledger_archive (started_at);
CREATE INDEX ledger_archive_unpriced ON ledger_archive (model, upstream_model) WHERE cost IS NULL;

-- One row per authenticated request, exactly once.
CREATE VIEW ledger AS
SELECT request_id, started_at, key_id, user_id, provider_id, model, upstream_model, endpoint, status_code, outcome,
    input_tokens, output_tokens, cache_write_5m_tokens, cache_write_1h_tokens, cache_read_tokens, reasoning_tokens,
    image_input_tokens, image_output_tokens, usage_extra, price_model, cost, cost_multiplier, estimated, duration_ms
FROM request_log
UNION ALL
SELECT request_id, started_at, key_id, user_id, provider_id, model, upstream_model, endpoint, status_code, outcome,
    input_tokens, output_tokens, cache_write_5m_tokens, cache_write_1h_tokens, cache_read_tokens, reasoning_tokens,
    image_input_tokens, image_output_tokens, usage_extra, price_model, cost, cost_multiplier, estimated, duration_ms
FROM ledger_archive;

-- Who used how much in each hour (UTC).
CREATE TABLE hourly_users (
    hour INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    PRIMARY KEY (hour, user_id)
);

-- All time: lifetime figures, which models and statuses occur, and the totals of the usage log.
CREATE TABLE usage_totals (
    user_id INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    provider_id INTEGER NOT NULL,
    model TEXT NOT NULL,
    status_code INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cache_write_5m_tokens INTEGER NOT NULL,
    cache_write_1h_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    PRIMARY KEY (user_id, key_id, provider_id, model, status_code)
);

-- Sums of whole days, for what would have to read many hours of everybody: charts by day, and the usage log's totals. Days are
-- those of the gateway's time zone. Made in the background from the hourly sums, never by the ledger's writer.

-- The days that are summed. A record that comes late takes its day out, in its own transaction, until it is summed again.
CREATE TABLE summed_days (
    -- when it ends, and when it began
    until INTEGER NOT NULL PRIMARY KEY,
    day INTEGER NOT NULL
);

-- Each day cut in several ways: 1 not at all, 2 by user and key, 3 by provider, 4 by model, 5 by endpoint, 6 by these three, 7 by
-- user, key and model, 8 by user, key and provider. What a cut does not tell apart is 0 or empty.
CREATE TABLE daily_sums (
    cut INTEGER NOT NULL,
    day INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    provider_id INTEGER NOT NULL,
    model TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    status_code INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cache_write_5m_tokens INTEGER NOT NULL,
    cache_write_1h_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    -- how many hourly sums are in it: what it would cost to read those
    hours INTEGER NOT NULL,
    PRIMARY KEY (cut, day, user_id, key_id, provider_id, model, endpoint, status_code)
) WITHOUT ROWID;
CREATE INDEX daily_sums_user ON daily_sums (cut, user_id, day);
CREATE INDEX daily_sums_key ON daily_sums (cut, key_id, day);
CREATE INDEX daily_sums_model ON daily_sums (cut, model, provider_id, day);

-- What clients sent and got, where that is kept: at most so many bytes of each, and pruned from the old end.
CREATE TABLE session_messages (
    request_id BLOB NOT NULL PRIMARY KEY,
    started_at INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    key_id INTEGER,
    user_id INTEGER,
    -- of both bodies together, as kept
    bytes INTEGER NOT NULL,
    request_cut INTEGER NOT NULL,
    response_cut INTEGER NOT NULL,
    request BLOB NOT NULL,
    response BLOB NOT NULL
);
CREATE INDEX session_messages_session ON session_messages (session_id, started_at);
CREATE INDEX session_messages_time ON session_messages (started_at, bytes);

-- What holders had spent at another gateway before `tollgate import`. It counts toward limits; statistics and the request
-- log do not have it. A null id means none; a row with a user and no key is spending of keys that were not imported.
CREATE TABLE opening_balances (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- the gateway that it came from
    peer TEXT NOT NULL,
    spent_at INTEGER NOT NULL,
    key_id INTEGER,
    user_id INTEGER,
    provider_id INTEGER,
    -- billionths of a US dollar
    cost INTEGER NOT NULL
);
CREATE INDEX opening_balances_user ON opening_balances (peer, user_id);

-- How many transactions have written costs that became known late (`Store::reprice`): a snapshot of the database with the number n has
-- exactly the first n. Counters in Redis that are rebuilt from the ledger recognise by it which of these costs they have.
CREATE TABLE late_costs (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL
);
