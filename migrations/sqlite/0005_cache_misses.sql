-- Input that providers did not read from their prompt caches, per hour (UTC). Only requests that missed some are in it.
CREATE TABLE hourly_cache_misses (
    hour INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    -- a known client's name; empty: any other
    client TEXT NOT NULL,
    cause TEXT NOT NULL,
    requests INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    PRIMARY KEY (hour, user_id, key_id, client, cause)
) WITHOUT ROWID;
CREATE INDEX hourly_cache_misses_user ON hourly_cache_misses (user_id, hour);
