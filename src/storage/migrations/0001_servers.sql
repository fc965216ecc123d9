CREATE TABLE accounts (
  id         TEXT PRIMARY KEY,
  label      TEXT NOT NULL,
  created_at INTEGER NOT NULL
);

-- A key is stored as its SHA-256 alone.
CREATE TABLE api_keys (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  label      TEXT NOT NULL,
  hash       BLOB NOT NULL UNIQUE,
  last_four  TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX api_keys_by_account ON api_keys (account_id);

CREATE TABLE servers (
  id            TEXT PRIMARY KEY,
  account_id    TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  task          TEXT NOT NULL,
  tier          TEXT NOT NULL CHECK (tier IN ('small', 'medium', 'large')),
  region        TEXT NOT NULL CHECK (region IN ('us-east', 'us-west', 'eu-west')),
  status        TEXT NOT NULL CHECK (status IN ('running', 'sleeping', 'building')),
  handle        TEXT NOT NULL,
  storage_bytes INTEGER NOT NULL DEFAULT 0,
  credits_used  REAL NOT NULL DEFAULT 0,
  created_at    INTEGER NOT NULL
);
CREATE INDEX servers_by_account ON servers (account_id);

-- The first answer to a POST with an Idempotency-Key, kept for a day.
CREATE TABLE idempotency (
  account_id   TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  key          TEXT NOT NULL,
  request_hash BLOB NOT NULL,
  status       INTEGER NOT NULL,
  body         TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  PRIMARY KEY (account_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (created_at);
