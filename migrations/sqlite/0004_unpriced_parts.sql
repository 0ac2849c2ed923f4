-- Requests of which a part awaits a price: a marker that the store writes as the first member of `usage_extra`. A
-- comparison finds it: a function in the condition would make SQLite keep a statement journal for each insert, 3 600
-- instructions a row.
CREATE INDEX request_log_unpriced_parts ON request_log (request_id)
WHERE usage_extra >= '{"unpriced":true' AND usage_extra < '{"unpriced":true~';
CREATE INDEX ledger_archive_unpriced_parts ON ledger_archive (request_id)
WHERE usage_extra >= '{"unpriced":true' AND usage_extra < '{"unpriced":true~';
