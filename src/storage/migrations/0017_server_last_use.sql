-- When a server was last used, in milliseconds since 1970; null if never, or not since this is recorded.
ALTER TABLE servers ADD COLUMN last_used_at INTEGER;
