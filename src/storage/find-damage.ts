import { Database as Sqlite } from 'bun:sqlite'
import { messageOf } from '../runtime/error-info.ts'
import { migrate, SCHEMA, stepsUntil } from './migrate.ts'

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
