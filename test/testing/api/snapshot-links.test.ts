import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type TestBerth, testBerth } from '../../support/berth.ts'

let berth: TestBerth
let server: string
beforeAll(async () => {
  berth = await testBerth()
  server = await berth.server()
  await berth.exec(server, 'echo own > note.txt; ln -s /etc outside')
})
afterAll(() => berth?.[Symbol.asyncDispose]())

const snapshotOf = (name: string): string => join(berth.dataDir, 'snapshots', name)

/** Saves a snapshot and puts a link to a directory elsewhere in place of a path in it. */
async function crafted(name: string, path: string, elsewhere: string): Promise<void> {
  expect((await berth.control('POST', '/snapshots', { name })).status).toBe(201)
  const place = join(snapshotOf(name), path)
  renameSync(place, join(elsewhere, basename(place)))
  symlinkSync(elsewhere, place)
}

test.each([
  ['servers', () => 'servers'],
  ['a-server', () => `servers/${server}`],
  ['a-workspace', () => `servers/${server}/workspace`],
  ['the-database', () => 'berth.db'],
])('a snapshot with a link in place of %s is refused, and nothing changes', async (name, path) => {
  const elsewhere = mkdtempSync(join(tmpdir(), 'berth-elsewhere-'))
  try {
    // As in the directory of servers: berth removes those that it does not know.
    mkdirSync(join(elsewhere, 'kept'))
    writeFileSync(join(elsewhere, 'kept/file'), 'kept')
    await crafted(name, path(), elsewhere)
    const { status, body } = await berth.control('POST', `/snapshots/${name}/restore`, {})
    expect([status, body.message]).toEqual([400, expect.stringContaining(`${path()} is a link`)])
    expect(existsSync(join(elsewhere, 'kept/file'))).toBe(true)
    expect((await berth.exec(server, 'cat note.txt')).stdout).toBe('own\n')
  } finally {
    rmSync(elsewhere, { recursive: true, force: true })
  }
})

test('what is no state is not taken from a snapshot, and links of servers are', async () => {
  expect((await berth.control('POST', '/snapshots', { name: 'more' })).status).toBe(201)
  const elsewhere = mkdtempSync(join(tmpdir(), 'berth-elsewhere-'))
  try {
    symlinkSync(elsewhere, join(snapshotOf('more'), 'packages'))
    writeFileSync(join(snapshotOf('more'), 'credentials.json'), '{}')
    expect((await berth.control('POST', '/snapshots/more/restore', {})).status).toBe(200)
    expect((await berth.exec(server, 'cat note.txt; readlink outside')).stdout).toBe('own\n/etc\n')
    expect(await Bun.file(join(berth.dataDir, 'credentials.json')).text()).toContain(berth.info.api_key)
  } finally {
    rmSync(elsewhere, { recursive: true, force: true })
  }
})
