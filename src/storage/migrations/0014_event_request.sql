-- The request that caused an event; null if none did, or if it is not known.
ALTER TABLE events ADD COLUMN request_id TEXT;
