-- Changes of the files of a project, or of what a server publishes (app_id is the server's then), which have not come up
-- yet: what a start needs to put the version before back, as JSON.
CREATE TABLE unfinished_pushes (
  app_id    TEXT PRIMARY KEY,
  server_id TEXT NOT NULL REFERENCES servers (id) ON DELETE CASCADE,
  change    TEXT NOT NULL
);

-- Why the last change did not come up, as JSON; null once a later one does.
ALTER TABLE deployments ADD COLUMN failed_change TEXT;
ALTER TABLE projects ADD COLUMN failed_change TEXT;
