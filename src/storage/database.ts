/** Opens the SQLite database, migrates its schema, and gives typed queries. */
import { Database as Sqlite, type Statement } from 'bun:sqlite'
import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { type BunSQLiteDatabase, drizzle } from 'drizzle-orm/bun-sqlite'
import { StartupError } from '../errors.ts'
import { codeOf, isBusy, isDiskFull, messageOf } from '../runtime/error-info.ts'
import { BUSY_MS, databaseBusy } from './busy.ts'
import { makePrivate, remove, writePrivate } from './files.ts'
import { emptyDatabase } from './migrate.ts' with { type: 'macro' }
import { migrate } from './migrate.ts'
import sessions from './migrations/sessions/0001_sessions.sql' with { type: 'text' }
import admin from './migrations/sessions/0002_admin.sql' with { type: 'text' }
import { hasDatabase } from './state.ts'

export { findDamage, SCHEMA, schemaOf } from './migrate.ts'

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
  if (hasDatabase(path)) return
  // Those of a database that is gone would be applied to this one.
  for (const suffix of ['-wal', '-shm']) remove(`${path}${suffix}`)
  writePrivate(path, Bun.zstdDecompressSync(Buffer.from(EMPTY_DATABASE, 'base64')))
}

/** Compiled statements kept at most: each takes a few KB, and lists of ids make texts of any number. @bound system */
const MAX_KEPT = 200

/**
 * Makes a connection compile each text once and keep the statement for the next query with the same text. The one that
 * was not used for longest is dropped first; a query that holds it can still use it. No caller may keep the cursor of
 * `iterate` open: others have the same statement. `close(true)` finalizes them.
 */
export function keepStatements(sqlite: Sqlite): void {
  const compile = sqlite.prepare.bind(sqlite)
  const kept = new Map<string, Statement>()
  const prepare = (text: string): Statement => {
    const statement = kept.get(text) ?? compile(text)
    // A map lists its keys in the order in which they were set.
    kept.delete(text)
    kept.set(text, statement)
    for (const oldest of kept.keys()) {
      if (kept.size <= MAX_KEPT) break
      kept.delete(oldest)
    }
    return statement
  }
  sqlite.prepare = prepare as Sqlite['prepare']
}

/**
 * Caches results of reads until anything in the database changes. One process writes, through one connection, so its
 * count of changes is exact.
 */
export class ReadCache<Result> {
  readonly #version: () => number
  readonly #results = new Map<string, Result>()
  #seen = -1

  /** @param version `Database.version` */
  constructor(version: () => number) {
    this.#version = version
  }

  /** Returns the result for `key`, from `read` if there is none or it is old. */
  get(key: string, read: () => Result): Result {
    const version = this.#version()
    if (version !== this.#seen) {
      this.#results.clear()
      this.#seen = version
    }
    const kept = this.#results.get(key)
    if (kept !== undefined) return kept
    const result = read()
    // Missing rows are not cached: callers could fill the memory by asking for them.
    if (result !== undefined && result !== null) this.#results.set(key, result)
    return result
  }
}

/** The schema's steps, oldest first; a step that was ever released is never edited. */
const MIGRATIONS: readonly string[] = [sessions, admin]

/** The open database of signed-in browsers. */
export interface SessionDatabase {
  readonly queries: Queries
  close(): void
}

const pathIn = (dataDir: string): string => join(dataDir, 'sessions.db')

/** Reports whether somebody has signed in with a data directory. */
export const hasSessionDatabase = (dataDir: string): boolean => existsSync(pathIn(dataDir))

/**
 * Opens or creates `sessions.db` in a data directory. It lies beside the state: a reset and a restored snapshot keep
 * it. A file that cannot be read is replaced by an empty one, so that browsers have to sign in anew.
 *
 * @throws the system's error if the file cannot be written
 */
export function openSessionDatabase(dataDir: string): SessionDatabase {
  const path = pathIn(dataDir)
  try {
    return open(path)
  } catch (error) {
    if (!isUnreadable(error)) throw error
    remove(path)
    return open(path)
  }
}

function open(path: string): SessionDatabase {
  makePrivate(path)
  const sqlite = new Sqlite(path, { strict: true })
  try {
    sqlite.run(`PRAGMA busy_timeout = ${BUSY_MS}`)
    migrate(sqlite, path, MIGRATIONS)
    return { queries: drizzle(sqlite), close: () => sqlite.close() }
  } catch (error) {
    sqlite.close()
    throw error
  }
}

/** Reports whether a file is no database, a damaged one, or one of a newer berth. */
function isUnreadable(error: unknown): boolean {
  const code = codeOf(error)
  return error instanceof StartupError || code === 'SQLITE_NOTADB' || code === 'SQLITE_CORRUPT'
}
