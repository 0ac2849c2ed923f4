-- The lifetime sums, with all that the hourly ones sum: so that the usage log's totals, too, need not read a year of hours.
DROP TABLE usage_totals;
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
INSERT INTO usage_totals
    SELECT user_id, key_id, provider_id, model, status_code, SUM(requests), SUM(errors), SUM(unpriced), SUM(input_tokens),
        SUM(output_tokens), SUM(cache_write_5m_tokens), SUM(cache_write_1h_tokens), SUM(cache_read_tokens),
        SUM(reasoning_tokens), SUM(cost), SUM(duration_ms)
    FROM hourly_sums GROUP BY user_id, key_id, provider_id, model, status_code;
