-- A request counts at the time of its admission: that is `started_at`, here and in the ledger. Its head came this much earlier;
-- null: at the same time.
ALTER TABLE request_log ADD COLUMN IF NOT EXISTS admitted_ms BIGINT;
