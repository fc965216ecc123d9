-- Browsers that are signed in, by the SHA-256 of the secret in their cookie. key_id is null if a link began the session.
-- account_id and key_id refer to the state, which lies in another file. Times are milliseconds since 1970.
CREATE TABLE sessions (
  hash       BLOB PRIMARY KEY,
  id         TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL,
  key_id     TEXT,
  user_agent TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL
);
CREATE INDEX sessions_by_account ON sessions (account_id, seen_at);
