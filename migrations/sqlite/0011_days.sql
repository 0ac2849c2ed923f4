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

-- What failed is often looked for within one user's or key's requests.
CREATE INDEX request_log_user_not_ok ON request_log (user_id, started_at, id) WHERE status_code <> 200;
CREATE INDEX request_log_key_not_ok ON request_log (key_id, started_at, id) WHERE status_code <> 200;
