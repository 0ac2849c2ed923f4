-- The lifetime sums, with all that the hourly ones sum: so that the usage log's totals, too, need not read a year of hours.
DROP TABLE usage_totals;
CREATE TABLE usage_totals (
    user_id BIGINT NOT NULL,
    key_id BIGINT NOT NULL,
    provider_id BIGINT NOT NULL,
    model TEXT NOT NULL,
    status_code BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    unpriced BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cache_write_5m_tokens BIGINT NOT NULL,
    cache_write_1h_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    PRIMARY KEY (user_id, key_id, provider_id, model, status_code)
);
INSERT INTO usage_totals
    SELECT user_id, key_id, provider_id, model, status_code, SUM(requests), SUM(errors), SUM(unpriced), SUM(input_tokens),
        SUM(output_tokens), SUM(cache_write_5m_tokens), SUM(cache_write_1h_tokens), SUM(cache_read_tokens),
        SUM(reasoning_tokens), SUM(cost), SUM(duration_ms)
    FROM hourly_sums GROUP BY user_id, key_id, provider_id, model, status_code;
