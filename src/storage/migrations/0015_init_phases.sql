-- The phases that a project's last bring-up has come to, with their times, as JSON.
ALTER TABLE projects ADD COLUMN init_phases TEXT NOT NULL DEFAULT '[]';
