-- Whether a provider gets the requests of a session over one WebSocket.
ALTER TABLE providers ADD COLUMN websocket INTEGER NOT NULL DEFAULT 0;
