-- What clients sent and got, where that is kept: at most so many bytes of each, and pruned from the old end.
CREATE TABLE session_messages (
    request_id BLOB NOT NULL PRIMARY KEY,
    started_at INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    key_id INTEGER,
    user_id INTEGER,
    -- of both bodies together, as kept
    bytes INTEGER NOT NULL,
    request_cut INTEGER NOT NULL,
    response_cut INTEGER NOT NULL,
    request BLOB NOT NULL,
    response BLOB NOT NULL
);
CREATE INDEX session_messages_session ON session_messages (session_id, started_at);
CREATE INDEX session_messages_time ON session_messages (started_at, bytes);
