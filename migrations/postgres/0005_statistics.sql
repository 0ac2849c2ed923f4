-- Coarser sums beside the hourly ones, for questions that would have to read a year or everybody's month of those. An id of 0
-- means none, as there.

-- All time: lifetime figures, and which models and statuses occur.
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
    cache_write_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    PRIMARY KEY (user_id, key_id, provider_id, model, status_code)
);
INSERT INTO usage_totals
    SELECT user_id, key_id, provider_id, model, status_code, SUM(requests), SUM(errors), SUM(unpriced), SUM(input_tokens),
        SUM(output_tokens), SUM(cache_write_5m_tokens + cache_write_1h_tokens), SUM(cache_read_tokens), SUM(cost)
    FROM hourly_sums GROUP BY user_id, key_id, provider_id, model, status_code;

-- Who used how much in each hour (UTC).
CREATE TABLE hourly_users (
    hour BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    PRIMARY KEY (hour, user_id)
);
INSERT INTO hourly_users
    SELECT hour, user_id, SUM(requests), SUM(errors), SUM(cost), SUM(duration_ms) FROM hourly_sums GROUP BY hour, user_id;
