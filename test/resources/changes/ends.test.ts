import { Database as Sqlite } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { TestChanges } from '../../support/change-stream.ts'
import { until } from '../../support/processes.ts'
import { Visitor } from '../../support/visitor.ts'

let berth: TestBerth
beforeAll(async () => {
  // A thousand requests would fill the pipe of its log.
  berth = await testBerth({ flags: { 'log-level': 'warn' } })
})
afterAll(() => berth[Symbol.asyncDispose]())

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

test('a stream ends when its key is deleted or reaches something else, and the message says why', async () => {
  const server = await berth.server()
  const keyFor = async (scope = {}) => (await berth.call('POST', '/keys', { label: 'x', ...scope })).body
  const [deleted, narrowed] = [await keyFor(), await keyFor()]
  using one = await TestChanges.socket(berth, bearer(deleted.key))
  using two = await TestChanges.events(berth, bearer(deleted.key))
  using three = await TestChanges.socket(berth, bearer(narrowed.key))
  await berth.call('DELETE', `/keys/${deleted.id}`)
  expect((await one.closed).code).toBe(4002)
  const { value } = await two.next('error')
  expect(value.error).toBe('missing_or_invalid_api_key')
  await two.closed
  await berth.call('PATCH', `/keys/${narrowed.id}`, { allowed_server_ids: [server] })
  expect((await three.closed).code).toBe(4002)
})

test("a browser follows by its session, from this instance's pages alone, until it is signed out", async () => {
  const visitor = await Visitor.of(berth)
  const headers = { cookie: visitor.cookie, origin: new URL(berth.info.base_url).origin }
  using changes = await TestChanges.socket(berth, headers)
  for (const origin of ['https://evil.example', ''])
    expect(TestChanges.socket(berth, { ...headers, origin })).rejects.toThrow()
  await berth.server({ task: 'seen in the browser' })
  await changes.next('server', ({ value }) => value?.task === 'seen in the browser')
  await visitor.submit('/signout')
  expect((await changes.closed).code).toBe(4001)
})

test('a request that is neither a handshake nor takes events is refused with what to send', async () => {
  const { status, body } = await berth.call('GET', '/changes', undefined, { accept: 'application/json' })
  expect(status).toBe(426)
  expect(body.message).toBe(
    'Changes are streamed: send a handshake of a WebSocket, or "Accept: text/event-stream".',
  )
  expect((await berth.call('GET', '/changes', undefined, { upgrade: 'websocket' })).status).toBe(400)
  const old = await berth.call('GET', '/changes', undefined, {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'sec-websocket-version': '8',
  })
  expect([old.status, old.headers.get('sec-websocket-version')]).toEqual([426, '13'])
  expect(old.headers.get('x-request-id')).toStartWith('req_')
  expect(old.body.message).toContain('asks for version 8 of WebSocket')
})

/** Adds sleeping servers, copies of one. Disposing of them removes them. */
function copiesOf(server: string, count: number): { ids: string[] } & Disposable {
  const ids = Array.from({ length: count }, (_, n) => `srv_made_${n}`)
  const database = new Sqlite(join(berth.dataDir, 'berth.db'))
  database.run('PRAGMA busy_timeout = 10000')
  const copy = database.prepare(
    `INSERT INTO servers (id, account_id, task, tier, region, status, handle, created_at)
      SELECT ?, account_id, '', tier, region, 'sleeping', handle, created_at FROM servers WHERE id = ?`,
  )
  database.transaction(() => ids.map((id) => copy.run(id, server)))()
  return {
    ids,
    [Symbol.dispose]() {
      database.run("DELETE FROM servers WHERE id LIKE 'srv_made_%'")
      database.close()
    },
  }
}

/** Gives each server the task that `taskOf` returns, twenty at a time. */
async function rename(ids: readonly string[], taskOf: (id: string) => string): Promise<void> {
  const left = [...ids]
  const renameLeft = async (): Promise<void> => {
    for (let id = left.pop(); id; id = left.pop())
      await berth.call('PATCH', `/servers/${id}`, { task: taskOf(id) })
  }
  await Promise.all(Array.from({ length: 20 }, renameLeft))
}

test('1,000 servers that change at once reach a reader', async () => {
  using copies = copiesOf(await berth.server(), 1_000)
  using bySocket = await TestChanges.socket(berth)
  using byEvents = await TestChanges.events(berth)
  await rename(copies.ids, (id) => `task of ${id}`)
  for (const { messages } of [bySocket, byEvents]) {
    const isTold = ({ id, value }: (typeof messages)[number]) => value?.task === `task of ${id}`
    const told = () => new Set(messages.filter(isTold).map(({ id }) => id)).size
    await until(() => told() === copies.ids.length, 'a message for each server')
  }
}, 120_000)

test('a reader that does not read holds up nothing, and is sent the newest state when it reads', async () => {
  const server = await berth.server()
  const { hostname, port } = new URL(berth.info.base_url)
  const reader = connect(Number(port), hostname)
  const handshake = [
    'GET /changes HTTP/1.1',
    `Host: ${hostname}:${port}`,
    `Authorization: Bearer ${berth.info.api_key}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ]
  let received = ''
  const chunks: Buffer[] = []
  try {
    reader.write(`${handshake.join('\r\n')}\r\n\r\n`)
    reader.on('data', (data) => {
      chunks.push(data)
      received = data.toString('latin1')
    })
    await until(() => received.includes('ready'), 'the first message')
    reader.pause()
    chunks.length = 0
    // Far more than the kernel and berth keep for it.
    const label = '🦊'.repeat(9_900)
    using copies = copiesOf(server, 100)
    using other = await TestChanges.socket(berth)
    for (let n = 1; n <= 10; n += 1) {
      await rename(copies.ids, () => `${n} ${label}`)
      // Each is a message of its own.
      const isNewest = ({ value }: (typeof other.messages)[number]) => value?.task?.startsWith(`${n} `)
      const told = () => new Set(other.messages.filter(isNewest).map(({ id }) => id)).size
      await until(() => told() === copies.ids.length, 'a message for each server')
      other.clear()
    }
    await berth.call('PATCH', `/servers/${server}`, { task: 'the last' })
    await other.next('server', ({ value }) => value?.task === 'the last')
    reader.resume()
    await until(
      () => chunks.length > 0 && Buffer.concat(chunks.slice(-2)).includes('the last'),
      'the newest state',
    )
    const bytes = chunks.reduce((sum, { length }) => sum + length, 0)
    expect(bytes).toBeLessThan(20 * 1024 * 1024)
  } finally {
    reader.destroy()
  }
}, 120_000)

test('a fault applies to the handshake', async () => {
  const match = { operation: 'changes.stream' }
  const { body } = await berth.control('POST', '/faults', { match, effect: { error: { status: 503 } } })
  expect(TestChanges.socket(berth)).rejects.toThrow()
  expect((await berth.call('GET', '/changes')).status).toBe(503)
  await berth.control('DELETE', `/faults/${body.id}`)
  using changes = await TestChanges.socket(berth)
  expect(changes.messages).toHaveLength(1)
})
