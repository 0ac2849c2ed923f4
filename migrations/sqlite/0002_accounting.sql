-- What requests cost. The ledger and its hourly sums are permanent; the request log is wide and may be pruned from its old end.
-- Written without foreign keys: a record outlives what it names.

-- One narrow row per authenticated request, exactly once: the primary key is the request's id.
CREATE TABLE ledger (
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
    -- null: no price was known for the model
    cost INTEGER,
    cost_multiplier TEXT NOT NULL,
    estimated INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX ledger_time ON ledger (started_at);
CREATE INDEX ledger_key ON ledger (key_id, started_at);
-- priced afterwards, when a price arrives
CREATE INDEX ledger_unpriced ON ledger (model) WHERE cost IS NULL;

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
    cost INTEGER,
    cost_multiplier TEXT NOT NULL,
    estimated INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    first_byte_ms INTEGER,
    overhead_us INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    decisions TEXT NOT NULL,
    user_agent TEXT,
    client_addr TEXT
);
CREATE UNIQUE INDEX request_log_request ON request_log (request_id);
CREATE INDEX request_log_time ON request_log (started_at);
CREATE INDEX request_log_key ON request_log (key_id, started_at);
CREATE INDEX request_log_user ON request_log (user_id, started_at);
CREATE INDEX request_log_provider ON request_log (provider_id, started_at);
CREATE INDEX request_log_session ON request_log (session_id, started_at);
CREATE INDEX request_log_model ON request_log (model, started_at);
CREATE INDEX request_log_endpoint ON request_log (endpoint, started_at);
-- most requests succeed at the first attempt: only the others are worth an entry
CREATE INDEX request_log_failed ON request_log (status_code, started_at) WHERE status_code <> 200;
CREATE INDEX request_log_not_ok ON request_log (started_at) WHERE status_code <> 200;
CREATE INDEX request_log_retried ON request_log (started_at) WHERE attempts > 1;
