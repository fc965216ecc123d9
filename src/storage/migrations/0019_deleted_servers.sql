-- Servers whose record is deleted and whose files may not be removed yet: a start goes on with it.
CREATE TABLE deleted_servers (
  id     TEXT PRIMARY KEY,
  handle TEXT NOT NULL
);
