import { Database as Sqlite } from 'bun:sqlite'
import { closeSync, existsSync, openSync, readSync } from 'node:fs'
import { StartupError } from '../errors.ts'
import { isBusy, messageOf } from '../runtime/error-info.ts'
import { ifPresent } from '../runtime/if-present.ts'
import { BUSY_MS, databaseBusy } from './busy.ts'
import servers from './migrations/0001_servers.sql' with { type: 'text' }
import events from './migrations/0002_events.sql' with { type: 'text' }
import keys from './migrations/0003_keys.sql' with { type: 'text' }
import accounts from './migrations/0004_accounts.sql' with { type: 'text' }
import webhooks from './migrations/0005_webhooks.sql' with { type: 'text' }
import projects from './migrations/0006_projects.sql' with { type: 'text' }
import tasks from './migrations/0007_tasks.sql' with { type: 'text' }
import controls from './migrations/0008_controls.sql' with { type: 'text' }
import signIn from './migrations/0009_signin.sql' with { type: 'text' }
import metering from './migrations/0010_metering.sql' with { type: 'text' }
import serverNetwork from './migrations/0011_server_network.sql' with { type: 'text' }
import projectCode from './migrations/0012_project_code.sql' with { type: 'text' }
import dailyUsage from './migrations/0013_daily_usage.sql' with { type: 'text' }
import eventRequest from './migrations/0014_event_request.sql' with { type: 'text' }
import initPhases from './migrations/0015_init_phases.sql' with { type: 'text' }
import attemptHeaders from './migrations/0016_attempt_headers.sql' with { type: 'text' }
import serverLastUse from './migrations/0017_server_last_use.sql' with { type: 'text' }
import unfinishedPushes from './migrations/0018_unfinished_pushes.sql' with { type: 'text' }
import deletedServers from './migrations/0019_deleted_servers.sql' with { type: 'text' }
import executions from './migrations/0020_executions.sql' with { type: 'text' }
import disabledWebhooks from './migrations/0021_disabled_webhooks.sql' with { type: 'text' }
import scenarioIds from './migrations/0022_scenario_ids.sql' with { type: 'text' }
import warnings from './migrations/0023_warnings.sql' with { type: 'text' }
import projectKind from './migrations/0024_project_kind.sql' with { type: 'text' }
import appDirectory from './migrations/0025_app_directory.sql' with { type: 'text' }

/**
 * The schema's steps, oldest first; a step that was ever released is never edited. Their texts are
 * part of the executable.
 */
const STATE_MIGRATIONS: readonly string[] = [
  servers,
  events,
  keys,
  accounts,
  webhooks,
  projects,
  tasks,
  controls,
  signIn,
  metering,
  serverNetwork,
  projectCode,
  dailyUsage,
  eventRequest,
  initPhases,
  attemptHeaders,
  serverLastUse,
  unfinishedPushes,
  deletedServers,
  executions,
  disabledWebhooks,
  scenarioIds,
  warnings,
  projectKind,
  appDirectory,
]

/** The number of the state's schema that this berth writes. */
export const SCHEMA = STATE_MIGRATIONS.length

/** Returns the steps up to a number of the schema. */
const stepsUntil = (schema: number): readonly string[] => STATE_MIGRATIONS.slice(0, schema)

/** Bytes of a database's header (sqlite.org/fileformat2.html, section 1.3). */
const HEADER = 100

/** Positions of the file format's versions for writing and reading in the header, and their value for write-ahead logging. */
const FORMAT_VERSIONS = [18, 19]
const WRITE_AHEAD_LOG = 2

/** Position of `user_version` in the header, in which the number of the schema is. */
const USER_VERSION = 60

/**
 * Returns the number of a database's schema; null if there is none yet. The header of the current schema is read
 * without opening the database, which a start would notice.
 *
 * @throws StartupError if another program holds the file
 */
export function schemaOf(path: string): number | null {
  // Looks first: an exception costs a start more.
  if (!existsSync(path)) return null
  const header = Buffer.alloc(HEADER)
  const isWhole = ifPresent(() => {
    const file = openSync(path, 'r')
    try {
      return readSync(file, header, 0, HEADER, 0) === HEADER
    } finally {
      closeSync(file)
    }
  })
  if (!isWhole || !header.toString('latin1').startsWith('SQLite format 3\0')) return null
  const written = header.readUInt32BE(USER_VERSION)
  if (written === SCHEMA) return written
  // The write-ahead log of a killed berth may have a later one.
  using sqlite = new Sqlite(path, { readwrite: true, create: false })
  try {
    sqlite.run(`PRAGMA busy_timeout = ${BUSY_MS}`)
    return sqlite.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? null
  } catch (error) {
    throw isBusy(error) ? databaseBusy(path) : error
  }
}

/**
 * Runs the migrations that the file lacks, in one transaction with their number (`user_version`): after a crash
 * either all or none are done. A start saves a snapshot before (`instance/upgrade.ts`).
 *
 * @throws StartupError if the file has migrations that this berth does not know
 */
export function migrate(sqlite: Sqlite, path: string, steps: readonly string[] = STATE_MIGRATIONS): void {
  const row = sqlite.query<{ user_version: number }, []>('PRAGMA user_version').get()
  const seen = row?.user_version ?? 0
  if (seen > steps.length) {
    throw new StartupError(
      `The database ${path} was written by a newer berth (schema ${seen}, this one knows ${steps.length}). Run that version, or choose another directory with --data.`,
    )
  }
  if (seen === steps.length) return
  sqlite.transaction(() => {
    sqlite.run(`${steps.slice(seen).join('\n')}\nPRAGMA user_version = ${steps.length}`)
  })()
}

/**
 * Returns an empty database with the newest schema and write-ahead logging, as Zstandard in base64. Imported as a macro, so
 * it is created once, when berth is compiled: copying it to a new directory saves a start the milliseconds of the
 * migrations, and the journal by which SQLite would change the mode.
 */
export function emptyDatabase(): string {
  const sqlite = new Sqlite(':memory:')
  try {
    migrate(sqlite, ':memory:')
    const file = new Uint8Array(sqlite.serialize())
    // A database in memory cannot be set to it.
    for (const at of FORMAT_VERSIONS) file[at] = WRITE_AHEAD_LOG
    return Bun.zstdCompressSync(file, { level: 19 }).toString('base64')
  } finally {
    sqlite.close()
  }
}

/** An entry of a database's schema: a table, an index, a trigger or a view (sqlite.org/schematab.html). */
interface SchemaEntry {
  readonly type: string
  readonly name: string
  readonly sql: string | null
}

/** Without what SQLite itself makes, such as statistics. */
const ENTRIES = `SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name`

/** Columns with the id of something that berth makes. */
const ID_COLUMN = /(?:^|_)id$/

/** A column with the ids of messages, which their senders choose. */
const MESSAGE_ID = 'message_id'

/**
 * Returns what is wrong with a database that another may have written, before berth reads it as its own: damaged pages,
 * a schema that no berth makes, or ids that are none. A trigger, for one, would change rows whenever berth writes some, and
 * an id names directories.
 *
 * @param path a copy that nothing else has open, or a database that is only read
 * @param options `onlyReads`: whether it is only read, and by this berth, which knows no newer schema
 * @returns the end of a sentence that begins with "its database"; null if nothing is wrong
 */
export function findDamage(path: string, { onlyReads = false } = {}): string | null {
  try {
    using sqlite = new Sqlite(path, onlyReads ? { readonly: true } : { readwrite: true, create: false })
    const number = sqlite.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
    // Who opens a newer one says that it is newer.
    if (number > SCHEMA) return onlyReads ? 'is one of a newer berth' : null
    const difference = differenceOf(entriesOf(number), sqlite.query<SchemaEntry, []>(ENTRIES).all())
    if (difference !== null) return difference
    const [found] = sqlite.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').all()
    return found?.quick_check === 'ok' ? findFalseId(sqlite) : `is corrupt (${found?.quick_check})`
  } catch (error) {
    return `cannot be read (${messageOf(error)})`
  }
}

/** Returns what is wrong with the first id that is none; null if all are ids. */
function findFalseId(sqlite: Sqlite): string | null {
  const tables = sqlite
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .all()
  for (const { name: table } of tables) {
    const columns = sqlite.query<{ name: string; type: string }, []>(`PRAGMA table_info("${table}")`).all()
    for (const { name: column, type } of columns) {
      if (type !== 'TEXT' || !ID_COLUMN.test(column) || column === MESSAGE_ID) continue
      const isFalse = `typeof("${column}") = 'blob' OR "${column}" GLOB '*[^A-Za-z0-9_-]*'`
      const found = sqlite.query(`SELECT 1 FROM "${table}" WHERE ${isFalse} LIMIT 1`).get()
      if (found !== null) return `has something in the column ${column} of ${table} that is no id`
    }
  }
  return null
}

/** Returns the schema that berth makes, up to a number. */
function entriesOf(number: number): SchemaEntry[] {
  using sqlite = new Sqlite(':memory:')
  migrate(sqlite, ':memory:', stepsUntil(number))
  return sqlite.query<SchemaEntry, []>(ENTRIES).all()
}

function differenceOf(expected: readonly SchemaEntry[], found: readonly SchemaEntry[]): string | null {
  const known = new Map(expected.map((entry) => [entry.name, entry]))
  for (const { type, name, sql } of found) {
    const own = known.get(name)
    if (own === undefined) return `has the ${type} ${JSON.stringify(name)}, which berth did not make`
    if (own.type !== type || own.sql !== sql)
      return `has the ${type} ${JSON.stringify(name)} in another form than berth makes`
    known.delete(name)
  }
  for (const { type, name } of known.values()) return `lacks the ${type} ${JSON.stringify(name)}`
  return null
}
