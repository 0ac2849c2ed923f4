-- Requests of which a part awaits a price: a marker in `usage_extra`, written by the store.
CREATE INDEX request_log_unpriced_parts ON request_log (request_id)
WHERE instr(usage_extra, '"unpriced":true') > 0;
CREATE INDEX ledger_archive_unpriced_parts ON ledger_archive (request_id)
WHERE instr(usage_extra, '"unpriced":true') > 0;
