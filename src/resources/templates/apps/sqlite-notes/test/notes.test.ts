import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApp } from '../src/app.ts'
import { openDatabase } from '../src/database.ts'
import { Notes } from '../src/notes.ts'

const folder = mkdtempSync(join(tmpdir(), 'notes-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('the database', () => {
  test('keeps notes when it is closed and opened again', () => {
    const path = join(folder, 'deep', 'notes.sqlite')
    const first = openDatabase(path)
    const { id } = new Notes(first).create({ title: 'Kept', body: '', pinned: false })
    first.close()
    const second = openDatabase(path)
    expect(new Notes(second).get(id)?.title).toBe('Kept')
    second.close()
  })

  test('of a later version of the app is refused', () => {
    const path = join(folder, 'later.sqlite')
    const database = openDatabase(path)
    database.run('PRAGMA user_version = 99')
    database.close()
    expect(() => openDatabase(path)).toThrow('has seen 99 migrations')
  })
})

describe('the API', () => {
  const database = openDatabase(':memory:')
  const notes = new Notes(database)
  const server = createApp({ hostname: '127.0.0.1', port: 0, notes })
  beforeAll(() => database.run('DELETE FROM notes'))
  afterAll(async () => {
    await server.stop(true)
    database.close()
  })

  async function call(method: string, path: string, body?: unknown) {
    const init = { method, headers: { 'content-type': 'application/json' } }
    const response = await fetch(
      new URL(path, server.url),
      body === undefined ? init : { ...init, body: JSON.stringify(body) },
    )
    const text = await response.text()
    return { status: response.status, body: text ? JSON.parse(text) : null }
  }

  test('makes, reads, changes and removes a note', async () => {
    const made = await call('POST', '/api/notes', { title: ' Soup ', body: 'Leek' })
    expect(made).toMatchObject({ status: 201, body: { title: 'Soup', body: 'Leek', pinned: false } })
    const path = `/api/notes/${made.body.id}`
    const changed = await call('PATCH', path, { pinned: true })
    expect(changed.body).toMatchObject({ title: 'Soup', body: 'Leek', pinned: true })
    expect((await call('GET', path)).body).toEqual(changed.body)
    expect((await call('DELETE', path)).status).toBe(204)
    expect((await call('GET', path)).status).toBe(404)
  })

  test('lists pinned notes first, and searches text as it is written', async () => {
    for (const [title, pinned] of [
      ['100 % wool', false],
      ['Old', true],
      ['100 sheep', false],
    ]) {
      await call('POST', '/api/notes', { title, pinned })
    }
    const titles = async (query = '') =>
      (await call('GET', `/api/notes${query}`)).body.notes.map((note: { title: string }) => note.title)
    expect((await titles())[0]).toBe('Old')
    expect(await titles('?search=sheep')).toEqual(['100 sheep'])
    expect(await titles(`?search=${encodeURIComponent('0 %')}`)).toEqual(['100 % wool'])
  })

  test.each([
    ['no title', {}],
    ['an empty title', { title: ' ' }],
    ['a body that is no text', { title: 'x', body: 5 }],
    ['a body too long', { title: 'x', body: 'x'.repeat(100_001) }],
    ['an array', []],
  ])('refuses %s and writes nothing', async (_name, body) => {
    const before = notes.count()
    expect(await call('POST', '/api/notes', body)).toMatchObject({
      status: 400,
      body: { error: 'bad_request' },
    })
    expect(notes.count()).toBe(before)
  })

  test.each(['0', '-1', '1.5', 'x', '99999999999999999999'])('has no note %p', async (id) => {
    expect((await call('GET', `/api/notes/${id}`)).status).toBe(404)
  })
})
