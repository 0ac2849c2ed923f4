-- Milliseconds without content in a stream that only sends signs of life; NULL = as configured, 0 = none.
ALTER TABLE providers ADD COLUMN streaming_content_ms INTEGER;
