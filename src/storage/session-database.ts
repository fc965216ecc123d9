import { Database as Sqlite } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { StartupError } from '../errors.ts'
import { codeOf } from '../runtime/error-info.ts'
import { BUSY_MS } from './busy.ts'
import type { Queries } from './database.ts'
import { migrate } from './migrate.ts'
import sessions from './migrations/sessions/0001_sessions.sql' with { type: 'text' }
import admin from './migrations/sessions/0002_admin.sql' with { type: 'text' }
import { makePrivate, remove } from './private-file.ts'

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
