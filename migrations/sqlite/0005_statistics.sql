-- Coarser sums beside the hourly ones, for questions that would have to read a year or everybody's month of those. An id of 0
-- means none, as there.

-- All time: lifetime figures, and which models and statuses occur.
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
    cache_write_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    PRIMARY KEY (user_id, key_id, provider_id, model, status_code)
);
INSERT INTO usage_totals
    SELECT user_id, key_id, provider_id, model, status_code, SUM(requests), SUM(errors), SUM(unpriced), SUM(input_tokens),
        SUM(output_tokens), SUM(cache_write_5m_tokens + cache_write_1h_tokens), SUM(cache_read_tokens), SUM(cost)
    FROM hourly_sums GROUP BY user_id, key_id, provider_id, model, status_code;

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
INSERT INTO hourly_users
    SELECT hour, user_id, SUM(requests), SUM(errors), SUM(cost), SUM(duration_ms) FROM hourly_sums GROUP BY hour, user_id;
