-- A webhook whose receiver answered 410 is off from disabled_at on, and its pending deliveries end as 'disabled'. SQLite
-- cannot change a CHECK, so the table is made anew, and with it the one that refers to it.
ALTER TABLE webhooks ADD COLUMN disabled_at INTEGER;

CREATE TABLE new_deliveries (
  id              TEXT PRIMARY KEY,
  webhook_id      TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
  event_seq       INTEGER NOT NULL REFERENCES events (seq) ON DELETE CASCADE,
  status          TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'failed', 'disabled')),
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL DEFAULT 0,
  created_at      INTEGER NOT NULL,
  UNIQUE (webhook_id, event_seq)
);
-- Lists are in the order of the row ids.
INSERT INTO new_deliveries (rowid, id, webhook_id, event_seq, status, attempts, next_attempt_at, created_at)
  SELECT rowid, id, webhook_id, event_seq, status, attempts, next_attempt_at, created_at FROM deliveries;

CREATE TABLE new_delivery_attempts (
  delivery_id      TEXT NOT NULL REFERENCES new_deliveries (id) ON DELETE CASCADE,
  number           INTEGER NOT NULL,
  at               INTEGER NOT NULL,
  ms               REAL NOT NULL,
  status           INTEGER,
  error            TEXT,
  headers          TEXT NOT NULL,
  body             TEXT NOT NULL,
  answer           TEXT,
  response_headers TEXT,
  PRIMARY KEY (delivery_id, number)
) WITHOUT ROWID;
INSERT INTO new_delivery_attempts
  SELECT delivery_id, number, at, ms, status, error, headers, body, answer, response_headers FROM delivery_attempts;

DROP TABLE delivery_attempts;
DROP TABLE deliveries;
ALTER TABLE new_deliveries RENAME TO deliveries;
ALTER TABLE new_delivery_attempts RENAME TO delivery_attempts;

CREATE INDEX deliveries_by_event ON deliveries (event_seq);
CREATE INDEX deliveries_pending ON deliveries (webhook_id, next_attempt_at, event_seq) WHERE status = 'pending';
CREATE INDEX deliveries_waiting ON deliveries (next_attempt_at) WHERE status = 'pending' AND next_attempt_at > 0;
