-- Pinned notes stand first.
ALTER TABLE notes ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1));
CREATE INDEX notes_in_order ON notes (pinned DESC, updated_at DESC);
