-- Of a login with the admin token: what ties it to that token. It ends when the token changes.
ALTER TABLE web_sessions ADD COLUMN token_check BYTEA;
-- With which token these were opened is not known.
DELETE FROM web_sessions WHERE key_id IS NULL;

-- Whether the limits of the user's keys are changed by administrators only.
ALTER TABLE users ADD COLUMN lock_key_limits SMALLINT NOT NULL DEFAULT 0;
