import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { freePort } from '../support/ports.ts'
import { linkOf, Visitor } from '../support/visitor.ts'

const DAY_S = 24 * 3_600

const isSignedIn = async (one: Visitor): Promise<boolean> => (await one.get('/access')).status === 200
const browsersOf = async (one: Visitor): Promise<string[]> =>
  [...(await one.get('/access')).text.matchAll(/\/access\/browsers\/([^/]+)\/signout/g)].map(
    ([, id]) => id ?? '',
  )
const advance = (berth: TestBerth, seconds: number) =>
  berth.control('POST', '/clock', { advance: `${seconds}s` })

describe('a session survives', () => {
  test('a restart, and two instances on two ports do not disturb each other', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'berth-signin-'))
    try {
      const port = freePort()
      const first = await testBerth({ dataDir, flags: { port } })
      const one = await Visitor.of(first)
      const ended = await Visitor.of(first)
      const { cookie } = ended
      await ended.submit('/signout')
      await first.stop()
      await using again = await testBerth({ dataDir, flags: { port } })
      expect(again.info.base_url).toBe(first.info.base_url)
      expect(await isSignedIn(one)).toBe(true)
      ended.cookie = cookie
      expect(await isSignedIn(ended)).toBe(false)

      await using other = await testBerth()
      const there = await Visitor.of(other)
      // As a browser sends them, which tells no ports apart.
      const jar = `${there.cookie}; ${one.cookie}`
      for (const visitor of [one, there]) {
        visitor.cookie = jar
        expect(await isSignedIn(visitor)).toBe(true)
      }
      await there.submit('/signout')
      expect(await isSignedIn(one)).toBe(true)
      there.cookie = one.cookie.replace(/\d+=/, `${new URL(there.origin).port}=`)
      expect(await isSignedIn(there)).toBe(false)
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  })

  test('a reset and a restored snapshot; neither brings back one that was ended', async () => {
    await using berth = await testBerth()
    const one = await Visitor.of(berth)
    const ended = await Visitor.of(berth)
    const { cookie } = ended
    await berth.control('POST', '/snapshots', { name: 'kept' })
    await ended.submit('/signout')
    expect((await berth.control('POST', '/reset')).status).toBe(200)
    expect(await isSignedIn(one)).toBe(true)
    expect((await berth.control('POST', '/snapshots/kept/restore')).status).toBe(200)
    expect(await isSignedIn(one)).toBe(true)
    ended.cookie = cookie
    expect(await isSignedIn(ended)).toBe(false)
  })

  test.each([
    [
      'its key',
      async (berth: TestBerth, id: string) => {
        expect((await berth.call('DELETE', `/keys/${id}`)).status).toBe(200)
        await berth.control('POST', '/snapshots/kept/restore')
      },
    ],
    [
      'the whole reach of its key',
      async (berth: TestBerth, id: string) => {
        const limited = { allowed_server_ids: [await berth.server()] }
        expect((await berth.call('PATCH', `/keys/${id}`, limited)).status).toBe(200)
        expect((await berth.call('PATCH', `/keys/${id}`, {})).status).toBe(200)
      },
    ],
  ])('no loss of %s, although that comes back', async (_, loseAndRegain) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'berth-signin-'))
    try {
      const port = freePort()
      for (const isRead of [true, false]) {
        const before = await testBerth({ dataDir, flags: { port } })
        const { id, key } = (await before.call('POST', '/keys', { label: 'lost' })).body
        const visitor = new Visitor(before.info.base_url)
        await visitor.post('/signin', { api_key: key })
        expect(await isSignedIn(visitor)).toBe(true)
        await before.control('POST', '/snapshots', { name: 'kept' })
        // A berth that has just started has read no session yet.
        if (!isRead) await before.stop()
        const berth = isRead ? before : await testBerth({ dataDir, flags: { port } })
        await loseAndRegain(berth, id)
        expect(await isSignedIn(visitor)).toBe(false)
        await visitor.post('/signin', { api_key: key })
        expect(await isSignedIn(visitor)).toBe(true)
        await berth.stop()
      }
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  })

  test('a file that cannot be read: browsers sign in again', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'berth-signin-'))
    try {
      const newer = new Database(join(dataDir, 'newer.db'))
      newer.run('PRAGMA user_version = 1000')
      newer.close()
      const damaged = readFileSync(join(dataDir, 'newer.db'))
      for (const content of ['', '{', 'x'.repeat(10_000), damaged, damaged.subarray(0, 1_000)]) {
        writeFileSync(join(dataDir, 'sessions.db'), content)
        writeFileSync(join(dataDir, 'sessions.json'), '{"sessions":[]}')
        await using berth = await testBerth({ dataDir })
        // That of an earlier version goes at the start, whether somebody signs in or not.
        expect(existsSync(join(dataDir, 'sessions.json'))).toBe(false)
        expect(await isSignedIn(await Visitor.of(berth))).toBe(true)
      }
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  })
})

describe('where the file cannot be written', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-signin-'))
  /** Has every change of a session fail, as on a full disk, or lets it be written again. */
  const block = (blocked: boolean): void => {
    using database = new Database(join(dataDir, 'sessions.db'))
    for (const change of ['INSERT', 'UPDATE', 'DELETE']) {
      if (!blocked) database.run(`DROP TRIGGER full_${change}`)
      else {
        database.run(
          `CREATE TRIGGER full_${change} BEFORE ${change} ON sessions BEGIN SELECT RAISE(ABORT, 'full'); END`,
        )
      }
    }
  }
  afterAll(() => rmSync(dataDir, { recursive: true, force: true }))

  test('signing out fails as a whole, and pages are shown all the same', async () => {
    const port = freePort()
    const berth = await testBerth({ dataDir, flags: { port, freeze: '2030-01-01T00:00:00Z' } })
    const one = await Visitor.of(berth)
    block(true)
    const { cookie } = one
    const csrf = await one.csrf()
    expect((await one.post('/signout', { csrf })).status).toBe(500)
    one.cookie = cookie
    expect(await isSignedIn(one)).toBe(true)
    // When it was used is due to be written.
    await advance(berth, 120)
    expect(await isSignedIn(one)).toBe(true)
    const link = await new Visitor(berth.info.base_url).get(await linkOf(berth))
    expect(link.status).toBe(500)
    expect(await browsersOf(one)).toHaveLength(1)

    block(false)
    expect((await one.post('/signout', { csrf })).status).toBe(303)
    await berth.stop()
    await using again = await testBerth({ dataDir, flags: { port, freeze: '2030-01-01T00:00:00Z' } })
    one.cookie = cookie
    expect(again.info.base_url).toBe(one.origin)
    expect(await isSignedIn(one)).toBe(false)
  })
})

describe('a session ends', () => {
  test('7 days after its last use', async () => {
    await using berth = await testBerth({ flags: { freeze: '2030-01-01T00:00:00Z' } })
    const one = await Visitor.of(berth)
    await advance(berth, 7 * DAY_S - 1)
    expect(await isSignedIn(one)).toBe(true)
    await advance(berth, 7 * DAY_S - 1)
    expect(await isSignedIn(one)).toBe(true)
    await advance(berth, 7 * DAY_S)
    expect(await isSignedIn(one)).toBe(false)
  })

  test('30 days after its beginning, however it is used', async () => {
    await using berth = await testBerth({ flags: { freeze: '2030-01-01T00:00:00Z' } })
    const one = await Visitor.of(berth)
    for (let day = 0; day < 29; day += 1) {
      await advance(berth, DAY_S)
      expect(await isSignedIn(one)).toBe(true)
    }
    await advance(berth, DAY_S - 1)
    expect(await isSignedIn(one)).toBe(true)
    await advance(berth, 1)
    expect(await isSignedIn(one)).toBe(false)
  })

  test('30 days after the clock was set back, at the latest', async () => {
    await using berth = await testBerth({ flags: { freeze: '2060-01-01T00:00:00Z' } })
    const one = await Visitor.of(berth)
    await berth.control('POST', '/clock', { set: '2030-01-01T00:00:00Z' })
    for (let day = 0; day < 30; day += 1) {
      expect(await isSignedIn(one)).toBe(true)
      await advance(berth, DAY_S)
    }
    expect(await isSignedIn(one)).toBe(false)
  })

  test('with its account', async () => {
    await using berth = await testBerth()
    const { body: account } = await berth.control('POST', '/accounts', { label: 'Ann' })
    const ann = await Visitor.of(berth, account.id)
    const first = await Visitor.of(berth)
    expect(await isSignedIn(ann)).toBe(true)
    await berth.control('DELETE', `/accounts/${account.id}`)
    expect(await isSignedIn(ann)).toBe(false)
    expect(await isSignedIn(first)).toBe(true)
  })

  test('used longest ago where an account has 50, and those of other accounts stay', async () => {
    await using berth = await testBerth({ flags: { freeze: '2030-01-01T00:00:00Z' } })
    const { body: account } = await berth.control('POST', '/accounts', { label: 'Ann' })
    const ann = await Visitor.of(berth, account.id)
    const used = await Visitor.of(berth)
    const unused = await Visitor.of(berth)
    await advance(berth, 120)
    await isSignedIn(used)
    for (let count = 0; count < 49; count += 1)
      await new Visitor(berth.info.base_url).get(await linkOf(berth))
    expect(await isSignedIn(unused)).toBe(false)
    expect(await isSignedIn(used)).toBe(true)
    expect(await isSignedIn(ann)).toBe(true)
    expect(await browsersOf(used)).toHaveLength(50)
    // The clock may be set back: the newest is not the one that makes room.
    await berth.control('POST', '/clock', { set: '2029-12-31T00:00:00Z' })
    expect(await isSignedIn(await Visitor.of(berth))).toBe(true)
  })
})
