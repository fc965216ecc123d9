-- What happened, written in the transaction that made it happen; deliveries are made from it.
CREATE TABLE events (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  event      TEXT NOT NULL,
  data       TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX events_by_account ON events (account_id, seq);

-- Whether server.created was emitted: a crash may come between the record and the running sandbox.
ALTER TABLE servers ADD COLUMN announced INTEGER NOT NULL DEFAULT 0;
UPDATE servers SET announced = 1;
