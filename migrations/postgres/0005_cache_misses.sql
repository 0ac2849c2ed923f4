-- Input that providers did not read from their prompt caches, per hour (UTC). Only requests that missed some are in it.
CREATE TABLE hourly_cache_misses (
    hour BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    key_id BIGINT NOT NULL,
    -- a known client's name; empty: any other
    client TEXT NOT NULL,
    cause TEXT NOT NULL,
    requests BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    PRIMARY KEY (hour, user_id, key_id, client, cause)
);
CREATE INDEX hourly_cache_misses_user ON hourly_cache_misses (user_id, hour);
