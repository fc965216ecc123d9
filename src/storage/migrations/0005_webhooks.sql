-- Subscriptions. The signing secret is sealed; from_seq is the event after which one subscribes.
CREATE TABLE webhooks (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  url        TEXT NOT NULL,
  events     TEXT NOT NULL,
  secret     BLOB NOT NULL,
  from_seq   INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX webhooks_by_account ON webhooks (account_id);

-- Up to which event deliveries have been made.
CREATE TABLE fan_out (
  id  INTEGER PRIMARY KEY CHECK (id = 1),
  seq INTEGER NOT NULL
);
INSERT INTO fan_out (id, seq) VALUES (1, 0);

-- One event for one webhook. next_attempt_at is 0 for "at once", else the time of the retry.
CREATE TABLE deliveries (
  id              TEXT PRIMARY KEY,
  webhook_id      TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
  event_seq       INTEGER NOT NULL REFERENCES events (seq) ON DELETE CASCADE,
  status          TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL DEFAULT 0,
  created_at      INTEGER NOT NULL,
  UNIQUE (webhook_id, event_seq)
);
CREATE INDEX deliveries_by_event ON deliveries (event_seq);
-- What a webhook is to be sent next, and when the next retry of all is due.
CREATE INDEX deliveries_pending ON deliveries (webhook_id, next_attempt_at, event_seq) WHERE status = 'pending';
CREATE INDEX deliveries_waiting ON deliveries (next_attempt_at) WHERE status = 'pending' AND next_attempt_at > 0;

-- What was sent and what came back: the headers as JSON, of the answer its first KiB.
CREATE TABLE delivery_attempts (
  delivery_id TEXT NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
  number      INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  ms          REAL NOT NULL,
  status      INTEGER,
  error       TEXT,
  headers     TEXT NOT NULL,
  body        TEXT NOT NULL,
  answer      TEXT,
  PRIMARY KEY (delivery_id, number)
) WITHOUT ROWID;
