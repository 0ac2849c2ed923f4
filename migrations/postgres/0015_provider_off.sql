-- Attempts before this time say nothing about the provider as it is now: its address, credential or proxy was changed then, or it
-- was enabled again.
ALTER TABLE providers ADD COLUMN health_since BIGINT NOT NULL DEFAULT 0;
-- Why and when the gateway itself disabled the provider, as JSON; null when it did not.
ALTER TABLE providers ADD COLUMN switched_off TEXT;
