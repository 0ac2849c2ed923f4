-- A request was one row of the log and one of the ledger, which repeated a third of it. Now the log's row is the ledger's too.
-- The table ledger_archive has the rows of requests that the log has no more; the view has all.
CREATE UNIQUE INDEX request_log_request ON request_log (request_id);
-- priced afterwards, when a price arrives
CREATE INDEX request_log_unpriced ON request_log (model, upstream_model) WHERE cost IS NULL;

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
INSERT INTO ledger_archive
SELECT request_id, started_at, key_id, user_id, provider_id, model, upstream_model, endpoint, status_code, outcome,
    input_tokens, output_tokens, cache_write_5m_tokens, cache_write_1h_tokens, cache_read_tokens, reasoning_tokens,
    image_input_tokens, image_output_tokens, usage_extra, price_model, cost, cost_multiplier, estimated, duration_ms
FROM ledger WHERE request_id NOT IN (SELECT request_id FROM request_log);
DROP TABLE ledger;
CREATE INDEX ledger_archive_time ON ledger_archive (started_at);
CREATE INDEX ledger_archive_key ON ledger_archive (key_id, started_at);
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
