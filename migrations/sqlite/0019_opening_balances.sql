-- What holders had spent at another gateway before `tollgate import`. It counts toward limits; statistics and the request
-- log do not have it. A null id means none; a row with a user and no key is spending of keys that were not imported.
CREATE TABLE opening_balances (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- the gateway that it came from
    peer TEXT NOT NULL,
    spent_at INTEGER NOT NULL,
    key_id INTEGER,
    user_id INTEGER,
    provider_id INTEGER,
    -- billionths of a US dollar
    cost INTEGER NOT NULL
);
CREATE INDEX opening_balances_user ON opening_balances (peer, user_id);
