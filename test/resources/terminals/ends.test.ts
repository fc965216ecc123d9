import { expect, test } from 'bun:test'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { TestViewer } from '../../support/viewer.ts'
import { Visitor } from '../../support/visitor.ts'

/** Opens a terminal on a server, and returns the path of its socket. */
async function opened(berth: TestBerth, server: string, request: object = { command: 'sleep 300' }) {
  const { body } = await berth.call('POST', `/servers/${server}/terminals`, request)
  return `/servers/${server}/terminals/${body.terminal.id}`
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

test('a key opens a socket while it reaches the server, and its end or another scope closes it', async () => {
  await using berth = await testBerth()
  const [server, other] = [await berth.server(), await berth.server()]
  const path = `${await opened(berth, server)}/attach`
  const keyFor = async (servers: string[]) =>
    (await berth.call('POST', '/keys', { label: 'viewer', allowed_server_ids: servers })).body
  const [ended, narrowed, elsewhere] = [await keyFor([server]), await keyFor([server]), await keyFor([other])]
  const one = await TestViewer.attach(berth, path, bearer(ended.key))
  const two = await TestViewer.attach(berth, path, bearer(narrowed.key))
  expect(TestViewer.attach(berth, path, bearer(elsewhere.key))).rejects.toThrow()
  expect((await berth.fetch(path, { headers: bearer(elsewhere.key) })).status).toBe(404)
  expect((await berth.fetch(`${path}?api_key=${ended.key}`, { headers: bearer('x') })).status).toBe(401)
  await berth.call('DELETE', `/keys/${ended.id}`)
  expect((await one.closed).code).toBe(4002)
  await berth.call('PATCH', `/keys/${narrowed.id}`, { allowed_server_ids: [other] })
  expect((await two.closed).code).toBe(4002)
})

test("a browser attaches by its session, from this instance's pages alone, until it is signed out", async () => {
  await using berth = await testBerth()
  const path = `${await opened(berth, await berth.server())}/attach`
  const visitor = await Visitor.of(berth)
  const { cookie } = visitor
  const { origin } = new URL(berth.info.base_url)
  const viewer = await TestViewer.attach(berth, path, { cookie, origin })
  for (const headers of [
    { cookie },
    { cookie, origin: 'https://evil.example' },
    { cookie, origin: `${origin}0` },
    { cookie: cookie.replace(/.$/, '~'), origin },
  ]) {
    expect(TestViewer.attach(berth, path, headers as Record<string, string>)).rejects.toThrow()
  }
  // Only for the socket.
  expect(
    (await fetch(`${berth.info.base_url}${path.replace('/attach', '')}`, { headers: { cookie, origin } }))
      .status,
  ).toBe(401)
  await visitor.submit('/signout')
  expect((await viewer.closed).code).toBe(4001)
})

test('a session that ends by its age closes the socket', async () => {
  await using berth = await testBerth()
  const path = `${await opened(berth, await berth.server(), { command: 'sleep 300' })}/attach`
  const { cookie } = await Visitor.of(berth)
  const viewer = await TestViewer.attach(berth, path, { cookie, origin: berth.info.base_url })
  await berth.control('POST', '/clock', { advance: '31d' })
  expect((await viewer.closed).code).toBe(4001)
})

test('the end of the server, its sleep and the end of berth close the socket, each with its code', async () => {
  await using berth = await testBerth()
  const [slept, deleted, crashed, last] = [
    await berth.server(),
    await berth.server(),
    await berth.server(),
    await berth.server(),
  ]
  const attach = async (server: string) => TestViewer.attach(berth, `${await opened(berth, server)}/attach`)
  const viewers = [await attach(slept), await attach(deleted), await attach(crashed)]
  const stopping = await attach(last)
  await berth.call('POST', `/servers/${slept}/actions`, { action: 'stop' })
  await berth.call('DELETE', `/servers/${deleted}`)
  await berth.control('POST', `/servers/${crashed}/fault`, { kind: 'crash' })
  const codes = await Promise.all(viewers.map(async (viewer) => (await viewer.closed).code))
  expect(codes).toEqual([4003, 4004, 4003])
  const { body } = await berth.call('GET', `/servers/${slept}/terminals`)
  expect(body.terminals).toMatchObject([{ viewers: 0, exit_code: expect.any(Number) }])
  expect((await berth.call('GET', `/servers/${slept}`)).body.server.status).toBe('sleeping')
  await berth.control('POST', '/reset')
  expect((await stopping.closed).code).toBe(4005)
})

test('a server has 20 terminals that run; those that have ended are listed for an hour and not counted', async () => {
  await using berth = await testBerth()
  const server = await berth.server()
  const path = `/servers/${server}/terminals`
  const ended = await berth.call('POST', path, { command: 'true' })
  const hasEnded = async () => (await berth.call('GET', path)).body.terminals[0].exit_code === 0
  await until(hasEnded, 'the end of the first')
  const all = await Promise.all(Array.from({ length: 20 }, () => opened(berth, server)))
  const refused = await berth.call('POST', path, { command: 'true' })
  expect([refused.status, refused.body.error]).toEqual([403, 'plan_limit'])
  await berth.call('DELETE', all[0] ?? '')
  await opened(berth, server)
  const ids = async () =>
    (await berth.call('GET', path)).body.terminals.map(({ id }: { id: string }) => id) as string[]
  expect((await ids()).length).toBe(21)
  await berth.control('POST', '/clock', { advance: '59m' })
  expect(await ids()).toContain(ended.body.terminal.id)
  await berth.control('POST', '/clock', { advance: '2m' })
  expect(await ids()).not.toContain(ended.body.terminal.id)
})

test('a terminal without viewer and output is hung up after --terminal-idle, a watched one is not', async () => {
  await using berth = await testBerth({ flags: { 'terminal-idle': '10m' } })
  const server = await berth.server()
  const [idle, watched] = [await opened(berth, server), await opened(berth, server)]
  const viewer = await TestViewer.attach(berth, `${watched}/attach`)
  await berth.control('POST', '/clock', { advance: '9m' })
  const codeOf = async (path: string) => (await berth.call('GET', path)).body.terminal.exit_code
  expect(await codeOf(idle)).toBe(null)
  await berth.control('POST', '/clock', { advance: '2m' })
  await until(async () => (await codeOf(idle)) === 129, 'the hang-up')
  await berth.control('POST', '/clock', { advance: '1h' })
  expect(await codeOf(watched)).toBe(null)
  viewer.close()
})

test('with --terminal-idle 0 a terminal that nobody watches or uses runs on', async () => {
  await using berth = await testBerth({ flags: { 'terminal-idle': '0' } })
  const path = await opened(berth, await berth.server(), { command: 'echo up; exec sleep 300' })
  await berth.call('GET', `${path}/screen?until=up`)
  await berth.control('POST', '/clock', { advance: '1000h' })
  expect((await berth.call('GET', path)).body.terminal.exit_code).toBe(null)
  const typed = await berth.call('POST', `${path}/input`, { keys: ['ctrl-c'], until: 'never' })
  expect(typed.body.screen).toMatchObject({ outcome: 'exited', exit_code: 130 })
})

test('a server with a viewer does not fall asleep; without one it does, and its terminals end', async () => {
  await using berth = await testBerth({ flags: { 'idle-timeout': '10m' } })
  const server = await berth.server()
  const path = await opened(berth, server)
  const viewer = await TestViewer.attach(berth, `${path}/attach`)
  const status = async () => (await berth.call('GET', `/servers/${server}`)).body.server.status
  await berth.control('POST', '/clock', { advance: '1h' })
  expect(await status()).toBe('running')
  viewer.close()
  await until(async () => (await berth.call('GET', path)).body.terminal.viewers === 0, 'the viewer to leave')
  await berth.control('POST', '/clock', { advance: '11m' })
  await until(async () => (await status()) === 'sleeping', 'the server to sleep')
  await until(async () => (await berth.call('GET', path)).body.terminal.exit_code !== null, 'its end')
})

test('a fault strikes the handshake as any operation, and the journal has both', async () => {
  await using berth = await testBerth()
  const path = `${await opened(berth, await berth.server())}/attach`
  const match = { operation: 'terminals.attach' }
  await berth.control('POST', '/faults', { match, effect: { error: { status: 503 } }, times: 1 })
  expect(TestViewer.attach(berth, path)).rejects.toThrow()
  await until(
    async () => (await berth.control('GET', '/requests?status=503')).body.requests.length === 1,
    'the fault',
  )
  const viewer = await TestViewer.attach(berth, path)
  const { body } = await berth.control('GET', '/requests?status=101')
  expect(body.requests).toMatchObject([{ method: 'GET', path, status: 101 }])
  viewer.close()
})
