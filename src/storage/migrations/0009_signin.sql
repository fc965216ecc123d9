-- Programs that may ask for access on somebody's behalf (RFC 7591). metadata is JSON: what they said of themselves.
-- secret_hash is null for public ones. One that nobody lets in expires.
CREATE TABLE oauth_clients (
  id          TEXT PRIMARY KEY,
  metadata    TEXT NOT NULL,
  secret_hash BLOB,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER
) WITHOUT ROWID;
CREATE INDEX oauth_clients_by_expiry ON oauth_clients (expires_at);

-- What a person has granted a client. resource is what its tokens are for (RFC 8707).
-- The lists are JSON arrays of ids; empty means all of the account's.
CREATE TABLE oauth_grants (
  id                  TEXT PRIMARY KEY,
  account_id          TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  client_id           TEXT NOT NULL REFERENCES oauth_clients (id) ON DELETE CASCADE,
  resource            TEXT NOT NULL,
  allowed_server_ids  TEXT NOT NULL DEFAULT '[]',
  allowed_project_ids TEXT NOT NULL DEFAULT '[]',
  created_at          INTEGER NOT NULL,
  last_used_at        INTEGER
);
CREATE INDEX oauth_grants_by_account ON oauth_grants (account_id);
CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id);

-- Authorization codes by their SHA-256. session_id is that of the browser in which it was granted. A used one stays until it expires, so that a second use is noticed.
CREATE TABLE oauth_codes (
  hash         BLOB PRIMARY KEY,
  grant_id     TEXT NOT NULL REFERENCES oauth_grants (id) ON DELETE CASCADE,
  session_id   TEXT NOT NULL,
  redirect_uri TEXT NOT NULL,
  challenge    TEXT NOT NULL,
  expires_at   INTEGER NOT NULL,
  used_at      INTEGER
) WITHOUT ROWID;
CREATE INDEX oauth_codes_by_grant ON oauth_codes (grant_id);

-- Access and refresh tokens by their SHA-256. A refresh token that was exchanged stays until it expires, so that a
-- second use is noticed.
CREATE TABLE oauth_tokens (
  hash        BLOB PRIMARY KEY,
  grant_id    TEXT NOT NULL REFERENCES oauth_grants (id) ON DELETE CASCADE,
  kind        TEXT NOT NULL CHECK (kind IN ('access', 'refresh')),
  expires_at  INTEGER NOT NULL,
  replaced_at INTEGER
) WITHOUT ROWID;
CREATE INDEX oauth_tokens_by_grant ON oauth_tokens (grant_id);
CREATE INDEX oauth_tokens_by_age ON oauth_tokens (expires_at);
