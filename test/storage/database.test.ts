import { Database as Sqlite } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { getTableConfig, type SQLiteTable } from 'drizzle-orm/sqlite-core'
import { StartupError } from '../../src/errors.ts'
import { idempotency } from '../../src/http/idempotency-table.ts'
import { accounts, accountUsage } from '../../src/resources/accounts/table.ts'
import { apiKeys } from '../../src/resources/keys/table.ts'
import { servers } from '../../src/resources/servers/table.ts'
import { readInstance, takeDataDirectory } from '../../src/storage/data-directory.ts'
import { openDatabase } from '../../src/storage/database.ts'
import { emptyDatabase, migrate } from '../../src/storage/migrate.ts'

function temporary(): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'berth-storage-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** A program that adds an account to a database, says so, and commits a moment later. */
const HOLD_A_MOMENT = `
  const { Database } = require('bun:sqlite')
  const other = new Database(process.argv[1])
  other.run('BEGIN IMMEDIATE')
  other.run("INSERT INTO accounts (id, label, created_at) VALUES ('acct_2', 'y', 2)")
  console.log('held')
  Bun.sleepSync(200)
  other.run('COMMIT')
`

describe('openDatabase', () => {
  test('opens the same file again, its rows kept', () => {
    using folder = temporary()
    const path = join(folder.path, 'berth.db')
    const first = openDatabase(path)
    first.queries.insert(accounts).values({ id: 'acct_1', label: 'x', createdAt: 1 }).run()
    first.close()
    const second = openDatabase(path)
    expect(second.queries.select().from(accounts).all()).toMatchObject([
      { id: 'acct_1', label: 'x', createdAt: 1 },
    ])
    second.close()
  })

  test('makes a new file what all steps lead to, for its owner alone, also where a start was cut short', () => {
    using folder = temporary()
    const path = join(folder.path, 'berth.db')
    // A start that was killed leaves a file without a byte, or one that is not in its place yet.
    writeFileSync(path, '')
    writeFileSync(`${path}.new`, 'half of a database')
    openDatabase(path).close()
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(existsSync(`${path}.new`)).toBe(false)
    const schemaOf = (sqlite: Sqlite) => ({
      version: sqlite.query('PRAGMA user_version').get(),
      objects: sqlite.query('SELECT type, name, sql FROM sqlite_master ORDER BY name').all(),
    })
    const [made, stepped] = [new Sqlite(path), new Sqlite(':memory:')]
    migrate(stepped, ':memory:')
    expect(schemaOf(made)).toEqual(schemaOf(stepped))
    expect(made.query('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
    for (const one of [made, stepped]) one.close()
  })

  test('a new file has write-ahead logging as it is written, and a copy of a state is given it', () => {
    using folder = temporary()
    const modeOf = (file: string) => {
      using sqlite = new Sqlite(file)
      return sqlite.query('PRAGMA journal_mode').get()
    }
    const empty = join(folder.path, 'empty.db')
    const path = join(folder.path, 'berth.db')
    const copy = join(folder.path, 'copy.db')
    writeFileSync(empty, Bun.zstdDecompressSync(Buffer.from(emptyDatabase(), 'base64')))
    expect(modeOf(empty)).toEqual({ journal_mode: 'wal' })
    const database = openDatabase(path)
    database.copyTo(copy)
    database.close()
    openDatabase(copy).close()
    expect(modeOf(copy)).toEqual({ journal_mode: 'wal' })
  })

  test('waits for the disk only if the file is kept', () => {
    using folder = temporary()
    const synchronousOf = (isEphemeral: boolean) => {
      const database = openDatabase(join(folder.path, `${isEphemeral}.db`), isEphemeral)
      const [row] = database.queries.values<[number]>(sql`PRAGMA synchronous`)
      database.close()
      return row?.[0]
    }
    expect(synchronousOf(true)).toBe(0)
    expect(synchronousOf(false)).toBe(1)
  })

  test('refuses a file of a newer berth with cause and remedy, and leaves it as it is', () => {
    using folder = temporary()
    const path = join(folder.path, 'berth.db')
    openDatabase(path).close()
    const sqlite = new Sqlite(path)
    sqlite.run('PRAGMA user_version = 999')
    sqlite.close()
    const before = readFileSync(path)
    expect(() => openDatabase(path)).toThrow(StartupError)
    expect(() => openDatabase(path)).toThrow(/newer berth.*--data/)
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('refuses a file that is not a database', () => {
    using folder = temporary()
    const path = join(folder.path, 'berth.db')
    writeFileSync(path, 'this is not a database, and long enough to be taken for one'.repeat(20))
    expect(() => openDatabase(path)).toThrow(StartupError)
  })

  test('a file that another program keeps is reported as such', () => {
    using folder = temporary()
    const path = join(folder.path, 'berth.db')
    openDatabase(path).close()
    using other = new Sqlite(path)
    other.run('PRAGMA journal_mode = DELETE')
    other.run('BEGIN EXCLUSIVE')
    expect(() => openDatabase(path)).toThrow(StartupError)
    expect(() => openDatabase(path)).toThrow(/berth\.db is locked by another program.*End that program/)
    other.run('ROLLBACK')
    openDatabase(path).close()
  })

  test('a write waits while another program has the file to itself', async () => {
    using folder = temporary()
    const path = join(folder.path, 'berth.db')
    const database = openDatabase(path)
    // In a process of its own: the write below stands still until the file is let go.
    const other = Bun.spawn([process.execPath, '-e', HOLD_A_MOMENT, path], { stdout: 'pipe' })
    await other.stdout.getReader().read()
    const seen = database.queries.transaction((tx) => {
      const before = tx.select().from(accounts).all()
      tx.insert(accounts).values({ id: 'acct_1', label: 'x', createdAt: 1 }).run()
      return before
    })
    expect(seen).toMatchObject([{ id: 'acct_2' }])
    expect(await other.exited).toBe(0)
    database.close()
  })

  test('version grows with every change and with nothing else', () => {
    using folder = temporary()
    const database = openDatabase(join(folder.path, 'berth.db'))
    const before = database.version()
    database.queries.select().from(accounts).all()
    expect(database.version()).toBe(before)
    database.queries.insert(accounts).values({ id: 'a', label: '', createdAt: 1 }).run()
    const inserted = database.version()
    expect(inserted).toBeGreaterThan(before)
    database.queries.update(accounts).set({ label: 'b' }).run()
    expect(database.version()).toBeGreaterThan(inserted)
    const updated = database.version()
    database.queries.delete(accounts).run()
    expect(database.version()).toBeGreaterThan(updated)
    database.close()
  })

  test('the migrations make what the tables say', () => {
    using folder = temporary()
    const path = join(folder.path, 'berth.db')
    openDatabase(path).close()
    const sqlite = new Sqlite(path, { readonly: true })
    for (const table of [accounts, accountUsage, apiKeys, servers, idempotency] as SQLiteTable[]) {
      const { name, columns } = getTableConfig(table)
      const made = sqlite
        .query<{ name: string; type: string; notnull: number }, []>(`PRAGMA table_info(${name})`)
        .all()
        .map((column) => `${column.name} ${column.type}`)
        .sort()
      expect(made).toEqual(
        columns.map((column) => `${column.name} ${column.getSQLType().toUpperCase()}`).sort(),
      )
    }
    sqlite.close()
  })
})

describe('takeDataFolder', () => {
  test('makes a folder that only its owner enters and git ignores', () => {
    using folder = temporary()
    const path = join(folder.path, 'data')
    const taken = takeDataDirectory(path)
    taken.writeCredentials({ api_key: 'k', admin_token: 'a' })
    expect(statSync(path).mode & 0o777).toBe(0o700)
    expect(statSync(join(path, 'credentials.json')).mode & 0o777).toBe(0o600)
    expect(readFileSync(join(path, '.gitignore'), 'utf8')).toBe('*\n')
    taken.release()
  })

  test('is held by one: a second one reports where the first runs', () => {
    using folder = temporary()
    const first = takeDataDirectory(folder.path)
    first.writeInstance({ pid: 1, base_url: 'http://127.0.0.1:1', version: '0', isolation: 'none' })
    expect(() => takeDataDirectory(folder.path)).toThrow(/in use.*http:\/\/127\.0\.0\.1:1.*--data/)
    expect(readInstance(folder.path)?.base_url).toBe('http://127.0.0.1:1')
    first.release()
    expect(existsSync(join(folder.path, 'instance.json'))).toBe(false)
    takeDataDirectory(folder.path).release()
  })

  test('a folder that cannot be written is refused with cause and remedy', () => {
    using folder = temporary()
    const file = join(folder.path, 'file')
    writeFileSync(file, '')
    expect(() => takeDataDirectory(join(file, 'data'))).toThrow(/cannot be written.*--data/)
  })

  test('a folder without write permission is refused; for root, one on a read-only file system', () => {
    using folder = temporary()
    const asRoot = process.getuid?.() === 0
    const mount = (...args: string[]) => Bun.spawnSync(['mount', ...args, folder.path]).exitCode === 0
    if (asRoot && !mount('-t', 'tmpfs', '-o', 'ro', 'tmpfs')) {
      return console.error('SKIP: root may not mount a read-only file system here')
    }
    if (!asRoot) chmodSync(folder.path, 0o500)
    try {
      expect(() => takeDataDirectory(join(folder.path, 'data'))).toThrow(/cannot be written.*--data/)
    } finally {
      if (asRoot) Bun.spawnSync(['umount', folder.path])
      else chmodSync(folder.path, 0o700)
    }
  })
})
