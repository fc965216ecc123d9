import { Database as Sqlite } from 'bun:sqlite'
import { closeSync, openSync, statSync } from 'node:fs'
import { type BunSQLiteDatabase, drizzle } from 'drizzle-orm/bun-sqlite'
import { StartupError } from '../errors.ts'
import { emptyDatabase } from './empty-database.ts' with { type: 'macro' }
import { migrate } from './migrate.ts'
import { writePrivate } from './private-file.ts'

/** Made when berth is compiled. */
const EMPTY_DATABASE = emptyDatabase()

/**
 * How long a write waits while another program, as the `sqlite3` shell or a copy under way, holds the file, in
 * milliseconds. berth answers nothing else meanwhile, as its writes are synchronous.
 */
export const BUSY_MS = 1_000

/** Typed queries over the one SQLite file. Synchronous: a transaction cannot be interleaved. */
export type Queries = BunSQLiteDatabase

/** The open database. */
export interface Database {
  readonly queries: Queries
  /** Whether `close` was called: a query throws from then on. */
  readonly closed: boolean
  /**
   * A number that grows with every row written through this connection, which is the only one; not a
   * number inside a transaction, which may yet be undone.
   */
  version(): number
  /** Writes a copy of what is committed, as one file, to a path where nothing is. Throws the system's error. */
  copyTo(path: string): void
  /** Copies the write-ahead log into the file and closes it. */
  close(): void
}

/**
 * Opens or creates the database and brings its schema up to date. Write-ahead logging with
 * `synchronous = NORMAL`: a committed change survives the end of the process, however it comes.
 *
 * @throws StartupError where the file cannot be used or a newer berth wrote it
 */
export function openDatabase(path: string): Database {
  try {
    makeWhereMissing(path)
    const sqlite = new Sqlite(path, { create: true, strict: true })
    sqlite.run(`PRAGMA busy_timeout = ${BUSY_MS}`)
    // A new file is given its mode without waiting for the disk: there is nothing in it yet that could be lost.
    sqlite.run('PRAGMA synchronous = OFF')
    sqlite.run('PRAGMA journal_mode = WAL')
    sqlite.run('PRAGMA synchronous = NORMAL')
    sqlite.run('PRAGMA foreign_keys = ON')
    migrate(sqlite, path)
    const changes = sqlite.query<{ n: number }, []>('SELECT total_changes() AS n')
    let closed = false
    return {
      queries: waiting(drizzle(sqlite)),
      get closed() {
        return closed
      },
      version: () => (sqlite.inTransaction ? Number.NaN : (changes.get()?.n ?? -1)),
      copyTo(path) {
        closeSync(openSync(path, 'wx', 0o600))
        sqlite.query('VACUUM INTO ?').run(path)
      },
      close() {
        try {
          sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
        } catch {
          // A full disk: the log stays beside the file, and the next start reads both.
        }
        closed = true
        sqlite.close()
      },
    }
  } catch (error) {
    if (error instanceof StartupError) throw error
    const cause = error instanceof Error ? error.message : String(error)
    throw new StartupError(
      `The database ${path} cannot be used: ${cause}. See that its folder is writable and its disk has room, or choose another folder with --data.`,
    )
  }
}

/**
 * Has transactions take the file when they begin. One that begins by reading could not wait: what it has
 * read is old where another program writes before it does, and SQLite ends it at once.
 */
function waiting(queries: Queries): Queries {
  const begin = queries.transaction.bind(queries)
  queries.transaction = (work, config) => begin(work, { behavior: 'immediate', ...config })
  return queries
}

/** Puts an empty database where there is none, or a file without a byte; whole or not at all, for its owner alone. */
function makeWhereMissing(path: string): void {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0) return
  writePrivate(path, Bun.gunzipSync(Buffer.from(EMPTY_DATABASE, 'base64')))
}
