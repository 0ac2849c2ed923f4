-- Requests of which a part awaits a price: a marker in `usage_extra`, written by the store.
CREATE INDEX ledger_unpriced_parts ON ledger (request_id)
WHERE strpos(usage_extra, '"unpriced":true') > 0;
