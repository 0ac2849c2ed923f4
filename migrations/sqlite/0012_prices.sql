-- What requests used that most do not: null where there is none of it, else JSON with those of `audioInput`, `audioOutput`,
-- `webSearches` and `tier` that are not 0 or `standard`.
ALTER TABLE ledger ADD COLUMN usage_extra TEXT;
ALTER TABLE request_log ADD COLUMN usage_extra TEXT;
