-- Projects. source is sealed: it may hold a repository's credentials; plan is how the app is installed and started.
CREATE TABLE projects (
  id             TEXT PRIMARY KEY,
  account_id     TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  server_id      TEXT NOT NULL REFERENCES servers (id) ON DELETE CASCADE,
  name           TEXT NOT NULL,
  slug           TEXT NOT NULL UNIQUE,
  description    TEXT,
  visibility     TEXT NOT NULL CHECK (visibility IN ('public', 'private')),
  lifecycle      TEXT NOT NULL CHECK (lifecycle IN ('persistent', 'ephemeral')),
  template       TEXT,
  source         BLOB,
  port           INTEGER NOT NULL UNIQUE,
  runtime_status TEXT NOT NULL CHECK (runtime_status IN ('unbuilt', 'running', 'paused')),
  init_run_id    TEXT,
  init_phase     TEXT CHECK (init_phase IN
    ('fetch', 'install', 'build', 'awaiting_secrets', 'start', 'healthcheck', 'ready', 'failed')),
  -- Whether the run goes on without the variables that are missing.
  proceed        INTEGER NOT NULL DEFAULT 0,
  plan           TEXT,
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL
);
CREATE INDEX projects_by_account ON projects (account_id);
CREATE INDEX projects_by_server ON projects (server_id);

-- Environment variables of servers (project_id is '') and projects; values are sealed.
CREATE TABLE secrets (
  server_id  TEXT NOT NULL REFERENCES servers (id) ON DELETE CASCADE,
  project_id TEXT NOT NULL,
  name       TEXT NOT NULL,
  value      BLOB NOT NULL,
  PRIMARY KEY (server_id, project_id, name)
) WITHOUT ROWID;

-- The published workspace of a server, one each; its port stays.
CREATE TABLE deployments (
  id         TEXT PRIMARY KEY,
  server_id  TEXT NOT NULL UNIQUE REFERENCES servers (id) ON DELETE CASCADE,
  port       INTEGER NOT NULL UNIQUE,
  plan       TEXT NOT NULL,
  created_at INTEGER NOT NULL
);

-- Where a server's workspace is published.
ALTER TABLE servers ADD COLUMN public_url TEXT;
