import { describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { until } from '../../compute/bench.ts'
import { NO_PATHS, World } from './world.ts'

const TINY = [{ name: 'tiny', dependencies: { '@s/dep': '^1.0.0' } }, { name: '@s/dep' }]
const ABBREVIATED = { accept: 'application/vnd.npm.install-v1+json' }
const MINUTES = 60_000

const digest = (bytes: Uint8Array): string =>
  `sha512-${new Bun.CryptoHasher('sha512').update(bytes).digest('base64')}`

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
const json = async (answer: Response | Promise<Response>): Promise<any> => (await answer).json()

/** A document of one version, with fields of the publisher's, whose tarball is that of `tiny`. */
const documentOf = (world: World, name: string, fields: object = {}) => ({
  name,
  versions: { '1.0.0': { name, version: '1.0.0', ...fields, dist: world.registry.dist('tiny') } },
})

const tarballs = (world: World): string[] => readdirSync(join(world.cache, 'files'))

describe('the mirror gives', () => {
  test.each(['tiny', '@s/dep', '@s%2fdep', '@s%2Fdep'])('the document of %s, in both forms', async (path) => {
    await using world = new World(TINY)
    const name = decodeURIComponent(path)
    for (const headers of [{}, ABBREVIATED]) {
      const answer = await world.ask(path, { headers })
      expect(answer.status).toBe(200)
      expect(await json(answer)).toMatchObject({ name, versions: { '1.0.0': { name, version: '1.0.0' } } })
    }
    expect(world.registry.asked.map(({ accept }) => accept.includes('install-v1'))).toEqual([false, true])
  })

  test('one version by its number or tag, and what the tags mean', async () => {
    await using world = new World([...TINY, { name: 'tiny', version: '2.0.0' }])
    expect(await json(world.ask('tiny/1.0.0'))).toMatchObject({ version: '1.0.0' })
    expect(await json(world.ask('tiny/latest'))).toMatchObject({ version: '2.0.0' })
    expect(await json(world.ask('-/package/tiny/dist-tags'))).toEqual({ latest: '2.0.0' })
    expect((await world.ask('tiny/3.0.0')).status).toBe(404)
    expect((await world.ask('tiny/__proto__')).status).toBe(404)
    expect(await json(world.ask('-/ping'))).toEqual({})
  })

  test('tarballs with the bytes that the document promises, and to HEAD their size', async () => {
    await using world = new World(TINY)
    const { versions } = await json(world.ask('tiny'))
    const bytes = await (await world.ask('tiny/-/tiny-1.0.0.tgz')).bytes()
    expect(digest(bytes)).toBe(versions['1.0.0'].dist.integrity)
    const head = await world.ask('tiny/-/tiny-1.0.0.tgz', { method: 'HEAD' })
    expect(head.headers.get('content-length')).toBe(String(bytes.length))
    expect(world.registry.count('.tgz')).toBe(1)
  })

  test('to each client such addresses of tarballs as leave no mirror in its lock file', async () => {
    await using world = new World(TINY)
    const tarball = async (agent: string) => {
      const answer = await world.ask('@s%2fdep', { headers: { 'user-agent': agent } })
      return (await json(answer)).versions['1.0.0'].dist.tarball
    }
    expect(await tarball('npm/11.0.0 node/v24 linux x64')).toBe(
      'https://registry.npmjs.org/@s/dep/-/dep-1.0.0.tgz',
    )
    expect(await tarball('yarn/1.22.22 npm/? node/v24')).toBe(
      'https://registry.npmjs.org/@s/dep/-/dep-1.0.0.tgz',
    )
    expect(await tarball('Bun/1.4.5')).toBeUndefined()
    expect(await tarball('pnpm/10.0.0 npm/? node/v24')).toMatch(
      /^http:\/\/127\.0\.0\.1:\d+\/@s\/dep\/-\/dep-1\.0\.0\.tgz$/,
    )
  })

  test('to Bun, which gets no addresses, a document that stays JSON whatever a publisher has written into it', async () => {
    await using world = new World(TINY)
    const document = documentOf(world, 'odd', { fixture: { tarball: 'berth:a",}]', other: 'b' } })
    world.registry.intercept = (path) => (path === '/odd' ? Response.json(document) : null)
    const answer = await json(world.ask('odd', { headers: { 'user-agent': 'Bun/1.4.5' } }))
    expect(answer.versions['1.0.0'].fixture.other).toBe('b')
  })

  test('a tag by which an unchanged document is not sent again', async () => {
    await using world = new World(TINY)
    const etag = (await world.ask('tiny')).headers.get('etag') ?? ''
    expect((await world.ask('tiny', { headers: { 'if-none-match': etag } })).status).toBe(304)
    expect((await world.ask('tiny', { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
  })

  test('a tarball that a lock file names, though nobody asked for the document', async () => {
    await using world = new World(TINY)
    expect((await world.ask('@s/dep/-/dep-1.0.0.tgz')).status).toBe(200)
    // The document of one version, not the whole one.
    expect(world.registry.asked.map(({ path }) => path)).toEqual(['/@s/dep/1.0.0', '/@s/dep/-/dep-1.0.0.tgz'])
    expect((await world.ask('@s/dep/-/dep-9.9.9.tgz')).status).toBe(404)
  })
})

describe('the mirror refuses', () => {
  test.each([
    ['none', ''],
    ['a wrong one', 'Bearer wrong'],
    ['the right one in other form', 'Basic wrong'],
  ])('who has no credential: %s', async (_, authorization) => {
    await using world = new World(TINY)
    for (const path of ['tiny', '-/ping', 'tiny/-/tiny-1.0.0.tgz', 'nothing']) {
      const answer = await world.ask(path, { headers: { authorization } })
      expect(answer.status).toBe(401)
      expect(await json(answer)).toEqual({ error: expect.stringContaining('credential') })
    }
    expect(world.registry.asked).toEqual([])
  })

  test('a credential that was taken back, and one in the address', async () => {
    await using world = new World(TINY)
    const place = { paths: NO_PATHS, directory: '', workspace: { read: () => Promise.reject(new Error()) } }
    const env = await world.packages.environment('srv_gone', place)
    const authorization = `Bearer ${env.BERTH_PACKAGES_TOKEN}`
    expect((await world.ask('tiny', { headers: { authorization } })).status).toBe(200)
    const url = `${env.BERTH_PACKAGES_URL}tiny?token=${env.BERTH_PACKAGES_TOKEN}`
    expect((await fetch(url)).status).toBe(401)
    world.packages.forget('srv_gone')
    expect((await world.ask('tiny', { headers: { authorization } })).status).toBe(401)
  })

  test.each(['PUT', 'POST', 'DELETE', 'PATCH'])('to be written to: %s', async (method) => {
    await using world = new World(TINY)
    for (const path of ['tiny', 'tiny/-/tiny-1.0.0.tgz', '-/npm/v1/security/advisories/bulk']) {
      const answer = await world.ask(path, { method, body: '{}' })
      expect(answer.status).toBe(405)
      expect(answer.headers.get('allow')).toBe('GET, HEAD')
      expect(await json(answer)).toEqual({ error: expect.stringContaining('read-only') })
    }
  })

  test.each([
    '-/v1/search?text=tiny',
    '-/whoami',
    '..%2f..%2fcredentials.json',
    '%2e%2e%2fberth.db',
    '@s%2f..%2f..%2fmaster.key',
    '.hidden',
    'tiny/-/..%2f..%2ftiny.tgz',
    'tiny/-/tiny.tgz%00',
    'tiny%00',
    '%',
    `${'a'.repeat(215)}`,
    'tiny/1.0.0/more',
  ])('a path that is not one of a package: %s', async (path) => {
    await using world = new World(TINY)
    const answer = await world.ask(path)
    expect(answer.status).toBe(404)
    expect(await json(answer)).toEqual({ error: expect.any(String) })
    expect(world.registry.asked).toEqual([])
  })

  test('a tarball that is not what the registry’s own record says, and keeps nothing of it', async () => {
    await using world = new World(TINY)
    world.registry.claim('tiny', { ...world.registry.dist('tiny'), integrity: digest(Buffer.from('other')) })
    const answer = await world.ask('tiny/-/tiny-1.0.0.tgz')
    expect(answer.status).toBe(424)
    expect((await json(answer)).error).toMatch(/is not what its own record says/)
    expect(tarballs(world)).toEqual([])
    expect(readdirSync(join(world.cache, 'incoming'))).toEqual([])
  })

  test('a version whose tarball no hash is known of', async () => {
    await using world = new World([...TINY, { name: 'tiny', version: '2.0.0' }])
    world.registry.claim('tiny', { tarball: world.registry.dist('tiny').tarball }, '2.0.0')
    expect(Object.keys((await json(world.ask('tiny'))).versions)).toEqual(['1.0.0'])
    expect((await world.ask('tiny/-/tiny-2.0.0.tgz')).status).toBe(404)
  })

  test('documents that are too large or none, and says so', async () => {
    await using world = new World(TINY)
    const large = () => new Response(new Uint8Array(65 * 2 ** 20))
    for (const [given, reason] of [
      [large, 'larger than'],
      [() => new Response('<html>'), 'no JSON'],
      [() => Response.json({ name: 'other', versions: {} }), 'no document of that package'],
      [() => Response.json({}, { status: 403 }), 'refused'],
    ] as const) {
      world.registry.intercept = given
      const answer = await world.ask('tiny')
      expect(answer.status).toBe(424)
      expect((await json(answer)).error).toContain(reason)
    }
  })
})

describe('a server', () => {
  test('that reads nothing of what it asks for fills no memory, and holds up no other', async () => {
    await using world = new World(TINY)
    const document = { ...documentOf(world, 'large'), readme: 'x'.repeat(12 * 2 ** 20) }
    world.registry.intercept = (path) => (path === '/large' ? Response.json(document) : null)
    const size = (await world.ask('large').then((response) => response.bytes())).length
    Bun.gc(true)
    const before = process.memoryUsage.rss()
    const { BERTH_PACKAGES_HOST = '', BERTH_PACKAGES_TOKEN = '' } = await world.environment('srv_greedy')
    const head = `GET /large HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${BERTH_PACKAGES_TOKEN}\r\n\r\n`
    const sockets = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const socket = connect(Number(BERTH_PACKAGES_HOST.split(':')[1]), '127.0.0.1')
        await once(socket, 'connect')
        socket.pause().write(head)
        return socket
      }),
    )
    const asked = () => world.ask('large').then((response) => response.bytes())
    for (let round = 0; round < 3; round += 1) expect((await asked()).length).toBe(size)
    expect(process.memoryUsage.rss() - before).toBeLessThan(400 * 2 ** 20)
    for (const socket of sockets) socket.destroy()
    // What it has left is free for it again.
    const again = await world.ask('large', { serverId: 'srv_greedy' })
    expect((await again.bytes()).length).toBe(size)
  })
})

/** Milliseconds that this process has used of a processor: other work on the machine adds nothing. */
function processorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

describe('a document', () => {
  test('that is large holds up nothing else for long, however many parts of it are asked for at once', async () => {
    await using world = new World(TINY)
    const { versions, ...rest } = documentOf(world, 'large') as { versions: Record<string, object> }
    const [version] = Object.values(versions)
    const many = Object.fromEntries(Array.from({ length: 26_000 }, (_, n) => [`1.0.${n}`, version]))
    const document = { ...rest, versions: { ...versions, ...many } }
    world.registry.intercept = (path) => (path === '/large' ? Response.json(document) : null)
    const tags = () => world.ask('-/package/large/dist-tags').then((response) => response.text())
    const text = await world.ask('large').then((response) => response.text())
    expect(text.length).toBeGreaterThan(2 ** 20)
    const begun = processorMs()
    JSON.parse(text)
    const oneMs = processorMs() - begun
    let longest = 0
    let last = processorMs()
    const look = (): void => {
      longest = Math.max(longest, processorMs() - last)
      last = processorMs()
    }
    const timer = setInterval(look, 1)
    await Promise.all(Array.from({ length: 30 }, tags))
    clearInterval(timer)
    look()
    expect(longest).toBeLessThan(15 * oneMs)
  })

  test('that is large waits while two others are loaded, and holds up no small one', async () => {
    await using world = new World(TINY)
    const rest = Promise.withResolvers<void>()
    const stalled = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const large = (name: string) =>
      JSON.stringify({ ...documentOf(world, name), readme: 'x'.repeat(2 * 2 ** 20) })
    world.registry.intercept = (path) => {
      if (path.startsWith('/more-')) return new Response(large(path.slice(1)))
      const number = ['/large-0', '/large-1'].indexOf(path)
      if (number === -1) return null
      const text = large(path.slice(1))
      async function* slowly() {
        yield text.slice(0, -10)
        stalled[number]?.resolve()
        await rest.promise
        yield text.slice(-10)
      }
      return new Response(slowly as never)
    }
    const slow = [world.ask('large-0'), world.ask('large-1')]
    await Promise.all(stalled.map(({ promise }) => promise))
    const waiting: Promise<Response>[] = []
    let answered = 0
    await until('a large one to wait', async () => {
      const asked = world.ask(`more-${waiting.length}`)
      waiting.push(asked.finally(() => (answered += 1)))
      expect((await world.ask('tiny')).status).toBe(200)
      await Promise.race([asked, Bun.sleep(1000)])
      return answered < waiting.length
    })
    rest.resolve()
    for (const answer of await Promise.all([...slow, ...waiting])) expect(answer.status).toBe(200)
  })

  test('is fresh for five minutes, then asked for again by its tag', async () => {
    await using world = new World(TINY)
    await world.ask('tiny')
    world.ahead = 4 * MINUTES
    await world.ask('tiny')
    expect(world.registry.asked.map(({ known }) => known)).toEqual([null])
    world.ahead = 6 * MINUTES
    await world.ask('tiny')
    world.ahead = 10 * MINUTES
    await world.ask('tiny')
    expect(world.registry.asked.map(({ known }) => known)).toEqual([null, expect.stringMatching(/^"/)])
    world.registry.publish({ name: 'tiny', version: '1.1.0' })
    world.ahead = 12 * MINUTES
    expect(Object.keys((await json(world.ask('tiny'))).versions)).toEqual(['1.0.0', '1.1.0'])
  })

  test('is fetched once for all that ask at once', async () => {
    await using world = new World(TINY)
    const answers = await Promise.all(Array.from({ length: 10 }, () => world.ask('tiny')))
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect(world.registry.count('/tiny')).toBe(1)
  })

  test('stays of use when the registry is out of reach, in the other form too, across a restart', async () => {
    await using world = new World(TINY)
    await world.ask('tiny', { headers: ABBREVIATED })
    await world.registry.cut()
    await world.restart()
    world.ahead = 60 * MINUTES
    for (const headers of [ABBREVIATED, {}]) {
      const answer = await world.ask('tiny', { headers })
      expect((await json(answer)).name).toBe('tiny')
    }
    const missing = await world.ask('@s/dep')
    expect(missing.status).toBe(424)
    expect((await json(missing)).error).toMatch(/could not be reached at http.*--npm-registry/)
  })

  test('that the registry has no more is not given any more', async () => {
    await using world = new World(TINY)
    await world.ask('tiny')
    world.ahead = 6 * MINUTES
    world.registry.intercept = () => Response.json({}, { status: 404 })
    expect((await world.ask('tiny')).status).toBe(404)
  })

  test('is asked for again where the registry answers with a fault at first', async () => {
    await using world = new World(TINY)
    let faults = 1
    world.registry.intercept = () => (faults-- > 0 ? new Response(null, { status: 503 }) : null)
    expect((await world.ask('tiny')).status).toBe(200)
    expect(world.registry.count('/tiny')).toBe(2)
  })

  test('damaged on disk is fetched again', async () => {
    await using world = new World(TINY)
    await world.ask('tiny')
    const [name = ''] = readdirSync(join(world.cache, 'documents'))
    const file = join(world.cache, 'documents', name)
    const bytes = readFileSync(file)
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
    writeFileSync(file, bytes)
    expect((await world.ask('tiny')).status).toBe(200)
    expect(world.registry.count('/tiny')).toBe(2)
    expect(world.said.join()).toContain('damaged')
  })
})

describe('a tarball', () => {
  test('is downloaded once for all that ask at once, and never seen in part', async () => {
    await using world = new World([{ name: 'tiny', ballast: 3_000_000 }])
    const answers = await Promise.all(
      Array.from({ length: 8 }, async () => digest(await (await world.ask('tiny/-/tiny-1.0.0.tgz')).bytes())),
    )
    expect(new Set(answers)).toEqual(new Set([world.registry.dist('tiny').integrity]))
    expect(world.registry.count('.tgz')).toBe(1)
  })

  test('that is large is sent to its end, also when the cache drops it meanwhile', async () => {
    await using world = new World([{ name: 'tiny', ballast: 20_000_000 }])
    const answer = await world.ask('tiny/-/tiny-1.0.0.tgz')
    for (const name of tarballs(world)) rmSync(join(world.cache, 'files', name))
    expect(digest(await answer.bytes())).toBe(world.registry.dist('tiny').integrity)
    const cancelled = await world.ask('tiny/-/tiny-1.0.0.tgz')
    await cancelled.body?.cancel()
    expect((await world.ask('tiny/-/tiny-1.0.0.tgz', { method: 'HEAD' })).status).toBe(200)
  })

  test('whose download breaks off is begun anew', async () => {
    await using world = new World([{ name: 'tiny', ballast: 200_000 }])
    const dist = world.registry.dist('tiny')
    const whole = await (await fetch(dist.tarball)).bytes()
    let asked = 0
    const server = createServer((_, response) => {
      response.writeHead(200, { 'content-length': whole.length })
      if (asked++ > 0) response.end(whole)
      else response.write(whole.subarray(0, 100_000), () => response.destroy())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    world.registry.claim('tiny', { ...dist, tarball: `http://127.0.0.1:${port}/tiny.tgz` })
    const bytes = await (await world.ask('tiny/-/tiny-1.0.0.tgz')).bytes()
    expect(digest(bytes)).toBe(dist.integrity)
    expect(asked).toBe(2)
    server.close()
  })

  test('damaged on disk is fetched again', async () => {
    await using world = new World(TINY)
    const before = await (await world.ask('tiny/-/tiny-1.0.0.tgz')).bytes()
    const [name = ''] = tarballs(world)
    writeFileSync(join(world.cache, 'files', name), 'poison')
    const after = await (await world.ask('tiny/-/tiny-1.0.0.tgz')).bytes()
    expect(after).toEqual(before)
    expect(world.registry.count('.tgz')).toBe(2)
  })

  test('with a SHA-1 alone, as of old packages, is verified by that', async () => {
    await using world = new World(TINY)
    const { tarball, shasum } = world.registry.dist('tiny')
    world.registry.claim('tiny', { tarball, shasum })
    expect((await world.ask('tiny/-/tiny-1.0.0.tgz')).status).toBe(200)
    expect(tarballs(world)).toEqual([`sha1-${shasum}`])
  })

  test('gives way to others when the cache is full: those that were not used for longest', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const publications = names.map((name) => ({ name, ballast: 100_000 }))
    await using world = new World(publications, { maxBytes: 350_000 })
    for (const [index, name] of names.entries()) {
      world.ahead = index * 1000
      await (await world.ask(`${name}/-/${name}-1.0.0.tgz`)).bytes()
      world.ahead += 500
      await (await world.ask('a/-/a-1.0.0.tgz')).bytes()
    }
    const sizes = tarballs(world).map((name) => statSync(join(world.cache, 'files', name)).size)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(350_000)
    // The one in constant use stayed.
    expect(world.registry.count('/a-1.0.0.tgz')).toBe(1)
    await (await world.ask('b/-/b-1.0.0.tgz')).bytes()
    expect(world.registry.count('/b-1.0.0.tgz')).toBe(2)
  })
})

test('nothing lies on disk and nothing listens until an install asks', async () => {
  await using world = new World(TINY)
  expect(existsSync(world.cache)).toBe(false)
  await world.ask('-/ping')
  expect(statSync(world.cache).mode & 0o777).toBe(0o700)
})

test('a server gets the reason of a refusal in its log, once', async () => {
  await using world = new World(TINY)
  await world.ask('nothing', { serverId: 'srv_a' })
  await world.ask('nothing', { serverId: 'srv_a' })
  expect(world.packages.takeProblems('srv_b')).toEqual([])
  expect(world.packages.takeProblems('srv_a')).toEqual([
    expect.stringMatching(/\/nothing does not exist \(404\)/),
  ])
  expect(world.packages.takeProblems('srv_a')).toEqual([])
})

test('no credential is logged', async () => {
  await using world = new World(TINY)
  const place = { paths: NO_PATHS, directory: '', workspace: { read: () => Promise.reject(new Error()) } }
  const { BERTH_PACKAGES_TOKEN = '?' } = await world.packages.environment('srv_ask', place)
  await world.registry.cut()
  await world.ask('tiny')
  expect(world.said.join()).toContain('out of reach')
  expect(world.said.join()).not.toContain(BERTH_PACKAGES_TOKEN)
})
