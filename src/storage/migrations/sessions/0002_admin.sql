-- Whether the browser may use the control API: a link to the instance's first account began the session.
ALTER TABLE sessions ADD COLUMN is_admin INTEGER NOT NULL DEFAULT 0;
