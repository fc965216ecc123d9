import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { accounts } from '../../src/resources/accounts/table.ts'
import { type Database, openDatabase, ReadCache } from '../../src/storage/database.ts'

/** A cache of the accounts' labels, and how often it read. */
function labels(database: Database) {
  const cache = new ReadCache<string[] | undefined>(database.version)
  const seen = { reads: 0 }
  const read = () => {
    seen.reads++
    const rows = database.queries.select().from(accounts).all()
    return rows.length === 0 ? undefined : rows.map(({ label }) => label)
  }
  return { seen, get: () => cache.get('all', read) }
}

function withDatabase(work: (database: Database, add: (label: string) => void) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'berth-storage-'))
  const database = openDatabase(join(folder, 'berth.db'))
  const add = (label: string) =>
    void database.queries.insert(accounts).values({ id: label, label, createdAt: 1 }).run()
  try {
    work(database, add)
  } finally {
    database.close()
    rmSync(folder, { recursive: true })
  }
}

test('reads once until something is written', () =>
  withDatabase((database, add) => {
    const { seen, get } = labels(database)
    add('a')
    expect([get(), get()]).toEqual([['a'], ['a']])
    expect(seen.reads).toBe(1)
    add('b')
    expect(get()).toEqual(['a', 'b'])
  }))

test('does not keep what a transaction saw that was undone', () =>
  withDatabase((database, add) => {
    const { get } = labels(database)
    add('a')
    expect(() =>
      database.queries.transaction(() => {
        add('b')
        expect(get()).toEqual(['a', 'b'])
        throw new Error('undone')
      }),
    ).toThrow('undone')
    expect(get()).toEqual(['a'])
  }))

test('does not keep that there is nothing', () =>
  withDatabase((database) => {
    const { seen, get } = labels(database)
    expect([get(), get()]).toEqual([undefined, undefined])
    expect(seen.reads).toBe(2)
  }))
