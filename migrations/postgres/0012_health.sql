-- How often the gateway itself asks a provider, in seconds, and for which model.
ALTER TABLE providers ADD COLUMN probe_interval BIGINT;
ALTER TABLE providers ADD COLUMN probe_model TEXT;
-- The credentials of providers: since when the gateway has noted their uses, and the last one.
CREATE TABLE credential_uses (
    provider_id BIGINT NOT NULL,
    credential_id BIGINT NOT NULL,
    known_since BIGINT NOT NULL,
    used_at BIGINT,
    PRIMARY KEY (provider_id, credential_id)
);
-- How providers were at each look, one every five minutes; and the looks of each day together.
CREATE TABLE provider_states (
    provider_id BIGINT NOT NULL,
    -- the beginning of the five minutes, or of the day (UTC)
    starts_at BIGINT NOT NULL,
    is_day SMALLINT NOT NULL,
    -- looks at which a request could be expected to be answered
    up BIGINT NOT NULL,
    -- those at which it could not
    down BIGINT NOT NULL,
    PRIMARY KEY (provider_id, is_day, starts_at)
);
