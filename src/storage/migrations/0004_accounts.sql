-- What an account's plan says otherwise than the instance's, as JSON, and its own monthly budget.
-- Credits are kept as whole units, 3,600,000 a credit: a second at a thousandth of a credit an hour is one.
ALTER TABLE accounts ADD COLUMN plan TEXT;
ALTER TABLE accounts ADD COLUMN budget_cap INTEGER;

ALTER TABLE servers DROP COLUMN credits_used;
ALTER TABLE servers ADD COLUMN credit_units INTEGER NOT NULL DEFAULT 0;
-- The begun second that is not charged yet.
ALTER TABLE servers ADD COLUMN carry_ms INTEGER NOT NULL DEFAULT 0;

-- What an account used in a calendar month (UTC), and the caps for which that was notified.
CREATE TABLE account_usage (
  account_id     TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  month          TEXT NOT NULL,
  used           INTEGER NOT NULL,
  threshold_caps TEXT NOT NULL DEFAULT '[]',
  reached_caps   TEXT NOT NULL DEFAULT '[]',
  PRIMARY KEY (account_id, month)
) WITHOUT ROWID;
