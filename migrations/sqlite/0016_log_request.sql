-- A request is found in the log by the time that the ledger has for its id. The ledger's primary key alone keeps ids unique:
-- the log gets exactly those rows that the ledger takes, in the same transaction.
DROP INDEX request_log_request;
