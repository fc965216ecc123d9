-- What was wrong with the pages of the version that came up last, as a JSON array of sentences.
ALTER TABLE projects ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]';
ALTER TABLE deployments ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]';
