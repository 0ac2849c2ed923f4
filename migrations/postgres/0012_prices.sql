-- What requests used that most do not: null where there is none of it, else JSON with those of `audioInput`, `audioOutput`,
-- `webSearches` and `tier` that are not 0 or `standard`.
ALTER TABLE ledger ADD COLUMN usage_extra TEXT;
ALTER TABLE request_log ADD COLUMN usage_extra TEXT;
-- The entry that priced the request, where it is not the one of the model that was asked for.
ALTER TABLE ledger ADD COLUMN price_model TEXT;
ALTER TABLE request_log ADD COLUMN price_model TEXT;

-- Rates are read from the entry as it was uploaded, so that entries of older versions have all their rates.
ALTER TABLE model_prices DROP COLUMN rates;
