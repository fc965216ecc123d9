-- What each server used by day (UTC), in units of credits, by kind: running, task or build. Servers may be deleted by now.
CREATE TABLE daily_usage (
  account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  day        TEXT NOT NULL,
  server_id  TEXT NOT NULL,
  kind       TEXT NOT NULL,
  units      INTEGER NOT NULL,
  PRIMARY KEY (account_id, day, server_id, kind)
) WITHOUT ROWID;

-- What was used before is known by month only. A line without a day says so.
INSERT INTO daily_usage SELECT DISTINCT account_id, '', '', '', 0 FROM account_usage;
