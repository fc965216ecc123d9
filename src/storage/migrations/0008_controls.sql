-- Faults that the control API set, in the order in which they are tried; each is JSON. How often one matched and struck.
CREATE TABLE faults (
  position   INTEGER PRIMARY KEY,
  id         TEXT NOT NULL UNIQUE,
  fault      TEXT NOT NULL,
  matched    INTEGER NOT NULL DEFAULT 0,
  hits       INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
);

-- What was posted to the inboxes, in the order in which it came. message_id is what the header webhook-id says;
-- verified is null where no known secret could tell; status is what was answered.
CREATE TABLE inbox (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT NOT NULL UNIQUE,
  name        TEXT NOT NULL,
  query       TEXT NOT NULL,
  headers     TEXT NOT NULL,
  body        BLOB NOT NULL,
  message_id  TEXT,
  webhook_id  TEXT,
  verified    INTEGER,
  reason      TEXT NOT NULL,
  status      INTEGER NOT NULL,
  received_at INTEGER NOT NULL
);
CREATE INDEX inbox_by_name ON inbox (name, seq);

-- What fixtures files have made: which id stands behind a name of a kind, and of a project what its code came from.
CREATE TABLE fixtures (
  kind   TEXT NOT NULL,
  name   TEXT NOT NULL,
  id     TEXT NOT NULL,
  source TEXT,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
