import { constants, Database as Sqlite } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

/**
 * Returns the ids of the servers that a database names, also of those that are deleted and whose files may not be removed
 * yet. Only reads it.
 *
 * @throws the system's error if it cannot be read
 */
export function serversIn(path: string): string[] {
  using sqlite = openToRead(path)
  const tables = sqlite
    .query<{ name: string }, []>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('servers', 'deleted_servers')",
    )
    .all()
  return tables.flatMap(({ name }) =>
    sqlite
      .query<{ id: string }, []>(`SELECT id FROM ${name}`)
      .all()
      .map(({ id }) => id),
  )
}

/** Opens a database without leaving files beside it: SQLite would make those of the write-ahead log, and keep them. */
function openToRead(path: string): Sqlite {
  if (existsSync(`${path}-wal`)) return new Sqlite(path, { readonly: true })
  const { SQLITE_OPEN_READONLY, SQLITE_OPEN_URI } = constants
  return new Sqlite(`${pathToFileURL(path)}?immutable=1`, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
}
