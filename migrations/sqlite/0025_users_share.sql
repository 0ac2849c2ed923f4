-- How many keys a user may have had, deleted ones included, to add one. NULL: none if the limits of
-- the user's keys are locked.
ALTER TABLE users ADD COLUMN max_keys INTEGER;
-- A user's retried requests: a report of them reads none of the user's other requests.
CREATE INDEX request_log_user_retried ON request_log (user_id, started_at) WHERE attempts > 1;
