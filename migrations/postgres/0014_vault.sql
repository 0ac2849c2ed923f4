-- Which secret key new texts are sealed with (the key's id, not the key): `tollgate secret rotate` sets it when it seals all texts anew.
CREATE TABLE sealing_key (
    id SMALLINT PRIMARY KEY CHECK (id = 1),
    key_id TEXT NOT NULL
);

-- The credential of a provider that was removed is kept no longer.
UPDATE providers SET key_cipher = '' WHERE deleted_at IS NOT NULL;
