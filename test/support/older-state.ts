import { Database } from 'bun:sqlite'
import { readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Where the steps of the schema are, in the order of their names. */
const MIGRATIONS = join(import.meta.dir, '../../src/storage/migrations')

/**
 * Gives a database the schema that an older berth left, with the rows and columns that this schema has.
 *
 * @param path the database, which nobody has open
 * @param schema number of the older schema
 */
export function makeOlder(path: string, schema: number): void {
  const older = `${path}-older`
  using database = new Database(older, { create: true })
  const steps = readdirSync(MIGRATIONS).filter((name) => name.endsWith('.sql'))
  for (const name of steps.sort().slice(0, schema)) database.run(readFileSync(join(MIGRATIONS, name), 'utf8'))
  database.run('ATTACH ? AS newer', [path])
  const columnsOf = (schemaName: string, table: string): string[] =>
    database
      .query<{ name: string }, [string, string]>('SELECT name FROM pragma_table_info(?, ?)')
      .all(table, schemaName)
      .map(({ name }) => name)
  database.run('PRAGMA foreign_keys = OFF')
  const tables = database
    .query<{ name: string }, []>("SELECT name FROM main.sqlite_master WHERE type = 'table'")
    .all()
  for (const { name } of tables) {
    if (name.startsWith('sqlite_')) continue
    const known = new Set(columnsOf('newer', name))
    const columns = columnsOf('main', name).filter((column) => known.has(column))
    // A step may have put rows there, which the newer state has too.
    database.run(`DELETE FROM main.${name}`)
    if (columns.length > 0)
      database.run(`INSERT INTO main.${name} (${columns}) SELECT ${columns} FROM newer.${name}`)
  }
  database.run('DETACH newer')
  database.run(`PRAGMA user_version = ${schema}`)
  database.close()
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true })
  renameSync(older, path)
}
