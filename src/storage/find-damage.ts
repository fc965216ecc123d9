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

/**
 * Returns what is wrong with a database that another may have written, before berth opens it as its own: damaged pages,
 * or a schema that no berth makes. A trigger, for one, would change rows whenever berth writes some.
 *
 * @param path a copy that nothing else has open
 * @returns the end of a sentence that begins with "its database"; null if nothing is wrong
 */
export function findDamage(path: string): string | null {
  try {
    using sqlite = new Sqlite(path, { readwrite: true, create: false })
    const number = sqlite.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
    // Who opens a newer one says that it is newer.
    if (number > SCHEMA) return null
    const difference = differenceOf(entriesOf(number), sqlite.query<SchemaEntry, []>(ENTRIES).all())
    if (difference !== null) return difference
    const [found] = sqlite.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').all()
    return found?.quick_check === 'ok' ? null : `is corrupt (${found?.quick_check})`
  } catch (error) {
    return `cannot be read (${messageOf(error)})`
  }
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
