import { Database as Sqlite } from 'bun:sqlite'
import { migrate } from './migrate.ts'

/**
 * An empty database with the newest schema, as gzip in base64. Imported as a macro, so that it is made once, when
 * berth is compiled: a new folder's database is a copy, where running every step would take a start milliseconds.
 */
export function emptyDatabase(): string {
  const sqlite = new Sqlite(':memory:')
  try {
    migrate(sqlite, ':memory:')
    return Buffer.from(Bun.gzipSync(new Uint8Array(sqlite.serialize()))).toString('base64')
  } finally {
    sqlite.close()
  }
}
