-- Work that one node at a time does for all: cleaning up, pricing afterwards, daily reports.
CREATE TABLE jobs (
    name TEXT NOT NULL PRIMARY KEY,
    -- the node that has the job, and until when nobody else may take it
    holder TEXT NOT NULL,
    held_until INTEGER NOT NULL,
    -- the due time that was last served
    done_for INTEGER NOT NULL,
    -- what the last or the running turn says of itself: JSON
    report TEXT NOT NULL
);

-- Messages that are not to be sent twice, by any node, before they are due again.
CREATE TABLE sent_notices (
    name TEXT NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
);

-- What awaits a price is found by the model that was asked for, and by the one that the provider was asked for.
DROP INDEX ledger_unpriced;
CREATE INDEX ledger_unpriced ON ledger (model, upstream_model) WHERE cost IS NULL;

-- The audit log is read newest first, often for one target.
CREATE INDEX audit_log_target ON audit_log (target, id);
