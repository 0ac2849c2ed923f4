-- Batches and files that providers hold for keys.
CREATE TABLE account_objects (
    key_id INTEGER NOT NULL,
    -- its id at the provider
    object_id TEXT NOT NULL,
    -- the name of its kind, such as files
    collection TEXT NOT NULL,
    provider_id INTEGER NOT NULL,
    -- which of the provider's keys: it is of that account
    credential_id INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    -- of a batch: it is not billed yet
    is_open INTEGER NOT NULL,
    -- of a file that a batch made: that batch
    batch TEXT,
    -- what the provider said of it last (JSON)
    body TEXT NOT NULL,
    -- of a file: the requests that it has for a batch (JSON)
    requests TEXT,
    PRIMARY KEY (key_id, object_id)
);
CREATE INDEX account_objects_list ON account_objects (key_id, collection, created_at, object_id);
