import { Database as Sqlite } from 'bun:sqlite'
import { migrate } from './migrate.ts'

/**
 * Returns an empty database with the newest schema, as gzip in base64. Imported as a macro, so it is created once,
 * when berth is compiled: copying it to a new directory saves a start the milliseconds of the migrations.
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
