-- Goals that agents work on.
CREATE TABLE tasks (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  server_id  TEXT NOT NULL REFERENCES servers (id) ON DELETE CASCADE,
  goal       TEXT NOT NULL,
  status     TEXT NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'awaiting_input', 'cancelled')),
  result     TEXT,
  question   TEXT,
  created_at INTEGER NOT NULL
);
CREATE INDEX tasks_by_server ON tasks (server_id);
CREATE INDEX tasks_unfinished ON tasks (server_id) WHERE status IN ('running', 'awaiting_input');

-- What agents report of tasks, in order.
CREATE TABLE task_events (
  task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  seq     INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  event   TEXT NOT NULL,
  PRIMARY KEY (task_id, seq)
) WITHOUT ROWID;

-- Structured builds. steps and artifacts are JSON.
CREATE TABLE builds (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  server_id  TEXT NOT NULL REFERENCES servers (id) ON DELETE CASCADE,
  goal       TEXT NOT NULL,
  status     TEXT NOT NULL CHECK (status IN ('queued', 'running', 'completed')),
  steps      TEXT NOT NULL,
  artifacts  TEXT NOT NULL,
  -- The template that it began with, and the paths of the files that were copied from it.
  template   TEXT,
  scaffold   TEXT NOT NULL DEFAULT '[]',
  url        TEXT,
  created_at INTEGER NOT NULL
);
CREATE INDEX builds_by_server ON builds (server_id);
CREATE INDEX builds_unfinished ON builds (server_id) WHERE status IN ('queued', 'running');

-- Scenarios of the scripted agent that were set by the control API, in order; each is JSON.
CREATE TABLE scenarios (
  position INTEGER PRIMARY KEY,
  scenario TEXT NOT NULL
);
