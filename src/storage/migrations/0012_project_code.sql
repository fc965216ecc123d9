-- What a project's code was when it last came from outside: its paths as JSON, of which a push removes those that it
-- lacks, and what its packages were installed from.
CREATE TABLE project_code (
  project_id TEXT PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
  paths      TEXT NOT NULL,
  installed  TEXT
);
