-- Until when a server that runs is charged: milliseconds since 1970. Null while it sleeps.
ALTER TABLE servers ADD COLUMN metered_at INTEGER;
