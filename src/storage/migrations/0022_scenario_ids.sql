-- The id of a scenario that was added alone; null for those that were set together.
ALTER TABLE scenarios ADD COLUMN id TEXT;
