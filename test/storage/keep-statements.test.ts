import { Database as Sqlite } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { accounts } from '../../src/resources/accounts/table.ts'
import { keepStatements, openDatabase } from '../../src/storage/database.ts'

test('a text is compiled once, and again when many others were used since', () => {
  using sqlite = new Sqlite(':memory:')
  keepStatements(sqlite)
  const first = sqlite.prepare('SELECT ? AS n')
  expect(sqlite.prepare('SELECT ? AS n')).toBe(first)
  for (let i = 0; i < 150; i++) sqlite.prepare(`SELECT ${i}`)
  expect(sqlite.prepare('SELECT ? AS n')).toBe(first)
  for (let i = 0; i < 300; i++) sqlite.prepare(`SELECT ${i}`)
  expect(sqlite.prepare('SELECT ? AS n')).not.toBe(first)
  expect(first.get(7)).toEqual({ n: 7 })
})

test('queries of the same text each get their own rows, prepared or not, after a failure too', () => {
  using folder = temporary()
  const { queries, close } = openDatabase(join(folder.path, 'berth.db'))
  const add = (id: string) =>
    queries.insert(accounts).values({ id, label: id, createdAt: 1 }).returning().get()
  const find = (id: string) => queries.select().from(accounts).where(eq(accounts.id, id))
  const prepared = find('a').prepare()
  expect(add('a').id).toBe('a')
  expect(() => add('a')).toThrow()
  expect(add('b').id).toBe('b')
  expect(find('b').get()?.id).toBe('b')
  expect(prepared.get()?.id).toBe('a')
  expect(find('c').all()).toEqual([])
  close()
})

test('closing leaves the file to nobody: no statement keeps it open, and each throws', () => {
  using folder = temporary()
  const path = join(folder.path, 'berth.db')
  const database = openDatabase(path)
  const prepared = database.queries.select().from(accounts).prepare()
  database.queries.select().from(accounts).all()
  const isOpen = () => openFiles().some((file) => file.startsWith(path))
  expect(isOpen()).toBe(true)
  database.close()
  expect(isOpen()).toBe(false)
  expect(() => prepared.all()).toThrow(/closed/)
  expect(() => database.queries.select().from(accounts).all()).toThrow(/closed/)
})

function temporary(): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'berth-statements-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** Returns the paths of the files that this process has open. */
function openFiles(): string[] {
  return readdirSync('/proc/self/fd').flatMap((name) => {
    try {
      return [readlinkSync(`/proc/self/fd/${name}`)]
    } catch {
      return []
    }
  })
}
