-- The credentials that a provider uses in turn, without their texts (JSON; empty: one credential),
-- and the percentage of an account's window above which a credential is passed over.
ALTER TABLE providers ADD COLUMN credentials TEXT NOT NULL DEFAULT '[]';
ALTER TABLE providers ADD COLUMN quota_guard BIGINT;
