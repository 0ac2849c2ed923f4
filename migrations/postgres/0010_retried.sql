-- The few requests that took more than two attempts are found by their number: else a search for them would read all that took two.
CREATE INDEX request_log_attempts ON request_log (attempts, started_at, id) WHERE attempts > 2;
