import { Database } from 'bun:sqlite'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const migrations = join(import.meta.dir, '../migrations')

/** Opens the database at a path, makes its folder and brings its schema up to date. `:memory:` keeps it nowhere. */
export function openDatabase(path: string): Database {
  if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true })
  const database = new Database(path, { strict: true })
  // Readers and the writer do not wait for each other; a commit survives a crash of the process.
  database.run('PRAGMA journal_mode = WAL')
  database.run('PRAGMA synchronous = NORMAL')
  database.run('PRAGMA busy_timeout = 5000')
  migrate(database)
  return database
}

/**
 * Runs the files of migrations/ that the database has not seen, in the order of their names. Each is one
 * transaction together with the number that says so. Add files; never change one that has run.
 */
function migrate(database: Database): void {
  const files = readdirSync(migrations)
    .filter((name) => name.endsWith('.sql'))
    .sort()
  const row = database.query<{ user_version: number }, []>('PRAGMA user_version').get()
  const seen = row?.user_version ?? 0
  if (seen > files.length) {
    throw new Error(`The database has seen ${seen} migrations, and there are only ${files.length} here.`)
  }
  files.slice(seen).forEach((name, index) => {
    database.transaction(() => {
      database.run(readFileSync(join(migrations, name), 'utf8'))
      database.run(`PRAGMA user_version = ${seen + index + 1}`)
    })()
  })
}
