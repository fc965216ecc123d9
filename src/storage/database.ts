import { Database as Sqlite } from 'bun:sqlite'
import { closeSync, openSync, statSync } from 'node:fs'
import { type BunSQLiteDatabase, drizzle } from 'drizzle-orm/bun-sqlite'
import { StartupError } from '../errors.ts'
import { messageOf } from '../runtime/error-info.ts'
import { BUSY_MS, databaseBusy, isBusy } from './busy.ts'
import { isDiskFull } from './disk-full.ts'
import { keepStatements } from './keep-statements.ts'
import { emptyDatabase } from './migrate.ts' with { type: 'macro' }
import { migrate } from './migrate.ts'
import { remove, writePrivate } from './private-file.ts'

/** Made when berth is compiled. */
const EMPTY_DATABASE = emptyDatabase()

/** Typed queries over the one SQLite file. Synchronous: a transaction cannot be interleaved. */
export type Queries = BunSQLiteDatabase

/** The open database. */
export interface Database {
  readonly queries: Queries
  /** Whether `close` was called: a query throws from then on. */
  readonly closed: boolean
  /**
   * Returns a number that grows with every row written through this connection, which is the only one; not a
   * number inside a transaction, which may yet be undone.
   */
  version(): number
  /** Writes a copy of the committed state, as one file, to a path that does not exist. Throws the system's error. */
  copyTo(path: string): void
  /** Copies the write-ahead log into the file and closes it. */
  close(): void
}

/**
 * Opens or creates the database and migrates its schema. Uses write-ahead logging with `synchronous = NORMAL`: a
 * committed change survives any end of the process.
 *
 * @param isEphemeral whether the file is removed at the end of the process; nothing then waits for the disk
 * @throws StartupError if the file cannot be used or a newer berth wrote it
 */
export function openDatabase(path: string, isEphemeral = false): Database {
  try {
    makeWhereMissing(path)
    const sqlite = new Sqlite(path, { create: true, strict: true })
    sqlite.run(`PRAGMA busy_timeout = ${BUSY_MS}`)
    // A snapshot's copy is given this mode without waiting for the disk: what it was copied from is still there. A new
    // file has the mode.
    sqlite.run('PRAGMA synchronous = OFF')
    sqlite.run('PRAGMA journal_mode = WAL')
    if (!isEphemeral) sqlite.run('PRAGMA synchronous = NORMAL')
    sqlite.run('PRAGMA foreign_keys = ON')
    migrate(sqlite, path)
    keepStatements(sqlite)
    const changes = sqlite.query<{ n: number }, []>('SELECT total_changes() AS n')
    let closed = false
    return {
      queries: waiting(drizzle(sqlite), sqlite),
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
          // The disk is full: the log stays beside the file, and the next start reads both.
        }
        closed = true
        // Also every statement: one that is left would keep the file open.
        sqlite.close(true)
      },
    }
  } catch (error) {
    if (error instanceof StartupError) throw error
    if (isBusy(error)) throw databaseBusy(path)
    const cause = messageOf(error)
    throw new StartupError(
      `The database ${path} cannot be used: ${cause}. See that its directory is writable and its disk has room, or choose another directory with --data.`,
      { cause: error },
    )
  }
}

/**
 * Makes transactions lock the file when they begin. One that begins by reading could not wait: if another program
 * writes before it does, its data are old and SQLite aborts it. On a full disk they are tried again with the room of the
 * write-ahead log; what a transaction does beside queries must bear that.
 */
function waiting(queries: Queries, sqlite: Sqlite): Queries {
  const begin = queries.transaction.bind(queries)
  queries.transaction = (work, config) => {
    const immediate = { behavior: 'immediate', ...config } as const
    try {
      return begin(work, immediate)
    } catch (error) {
      // What the write-ahead log holds can be moved to the file, which has the room already: the log then begins anew.
      if (!isDiskFull(error) || sqlite.inTransaction || !movesLog(sqlite)) throw error
      return begin(work, immediate)
    }
  }
  return queries
}

/** Moves the write-ahead log to the file. Reports whether all of it is there. */
function movesLog(sqlite: Sqlite): boolean {
  try {
    const moved = sqlite.query<{ busy: number; log: number }, []>('PRAGMA wal_checkpoint(RESTART)').get()
    return moved !== null && moved.busy === 0 && moved.log > 0
  } catch {
    return false
  }
}

/** Creates an empty database if there is no file or an empty one; atomically, with mode 0600. */
function makeWhereMissing(path: string): void {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0) return
  // Those of a database that is gone would be applied to this one.
  for (const suffix of ['-wal', '-shm']) remove(`${path}${suffix}`)
  writePrivate(path, Bun.zstdDecompressSync(Buffer.from(EMPTY_DATABASE, 'base64')))
}
