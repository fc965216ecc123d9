-- Commands that run without a request that waits for them. Their output is in files.
CREATE TABLE executions (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  server_id    TEXT NOT NULL REFERENCES servers (id) ON DELETE CASCADE,
  command      TEXT NOT NULL,
  pid          INTEGER,
  status       TEXT NOT NULL CHECK (status IN ('running', 'exited', 'ended')),
  exit_code    INTEGER,
  timed_out    INTEGER NOT NULL DEFAULT 0,
  stdout_bytes INTEGER NOT NULL DEFAULT 0,
  stderr_bytes INTEGER NOT NULL DEFAULT 0,
  started_at   INTEGER NOT NULL,
  ended_at     INTEGER
);
CREATE INDEX executions_by_server ON executions (server_id);
