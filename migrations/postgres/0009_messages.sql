-- What clients sent and got, where that is kept: at most so many bytes of each, and pruned from the old end.
CREATE TABLE session_messages (
    request_id BYTEA NOT NULL PRIMARY KEY,
    started_at BIGINT NOT NULL,
    session_id TEXT NOT NULL,
    key_id BIGINT,
    user_id BIGINT,
    -- of both bodies together, as kept
    bytes BIGINT NOT NULL,
    request_cut SMALLINT NOT NULL,
    response_cut SMALLINT NOT NULL,
    request BYTEA NOT NULL,
    response BYTEA NOT NULL
);
CREATE INDEX session_messages_session ON session_messages (session_id, started_at);
CREATE INDEX session_messages_time ON session_messages (started_at, bytes);
