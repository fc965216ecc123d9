-- The encrypted copy of a key; keys of before have none until they are given again.
ALTER TABLE api_keys ADD COLUMN cipher BLOB;
-- JSON arrays of ids; empty means all of the account's.
ALTER TABLE api_keys ADD COLUMN allowed_server_ids TEXT NOT NULL DEFAULT '[]';
ALTER TABLE api_keys ADD COLUMN allowed_project_ids TEXT NOT NULL DEFAULT '[]';
ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER;

-- Tells whether a master key is the one that this file's secrets are sealed under.
CREATE TABLE master_key_check (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  hmac BLOB NOT NULL
);

-- Answers are now kept sealed, and for the key that got them. Those of before say nothing of their key.
DROP TABLE idempotency;
CREATE TABLE idempotency (
  account_id   TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  api_key_id   TEXT NOT NULL,
  key          TEXT NOT NULL,
  request_hash BLOB NOT NULL,
  status       INTEGER NOT NULL,
  body         BLOB,
  created_at   INTEGER NOT NULL,
  PRIMARY KEY (api_key_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (created_at);
