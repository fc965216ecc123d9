-- The directory of a project's app, relative to its code; empty for the code's own directory.
ALTER TABLE projects ADD COLUMN directory TEXT NOT NULL DEFAULT '';
