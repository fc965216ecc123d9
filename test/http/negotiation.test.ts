import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'

/* Which form of a response a client gets by its Accept header (RFC 9110, 12.4 and 12.5.1). */

const berth = await berthForTests()
const server = await berth.server()

/** Returns the media type of a response, without its parameters. A stream is left at its head. */
async function typeOf(method: string, path: string, accept: string, body?: object): Promise<string> {
  const admin = path.startsWith('/_berth/') ? { authorization: `Bearer ${berth.info.admin_token}` } : {}
  const response = await berth.fetch(path.replace('SERVER', server), {
    method,
    headers: { ...admin, accept, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  await response.body?.cancel()
  return response.headers.get('content-type')?.split(';', 1)[0] ?? ''
}

const JSON_TYPE = 'application/json'
const EVENTS = 'text/event-stream'
const BYTES = 'application/octet-stream'
const FRAMES = 'application/vnd.berth.exec'

describe('a command responds', () => {
  test.each([
    [`${JSON_TYPE}, ${BYTES};q=0`, JSON_TYPE],
    [`${JSON_TYPE};q=1, ${BYTES};q=0`, JSON_TYPE],
    [`${BYTES}, ${JSON_TYPE}`, JSON_TYPE],
    [`${JSON_TYPE}, ${EVENTS};q=0.1`, JSON_TYPE],
    [`${JSON_TYPE}, ${EVENTS}`, JSON_TYPE],
    [`${EVENTS}, */*`, JSON_TYPE],
    [`${EVENTS};q=0`, JSON_TYPE],
    [`${EVENTS}; Q=0.000`, JSON_TYPE],
    [`${FRAMES};q=0.9, application/*;q=0.9`, JSON_TYPE],
    ['text/*', JSON_TYPE],
    ['application/*', JSON_TYPE],
    ['*/*', JSON_TYPE],
    ['image/png', JSON_TYPE],
    [`${EVENTS}, ${JSON_TYPE};q=0.9`, EVENTS],
    [`*/*;q=0.1, ${EVENTS};q=0.2`, EVENTS],
    [`${JSON_TYPE};q=0, ${EVENTS};q=0.001`, EVENTS],
    ['TEXT/Event-Stream;charset=utf-8', EVENTS],
    [`text/html;x="a, ${JSON_TYPE}", ${EVENTS};q=0.5`, EVENTS],
    [`${BYTES};q=0.2, ${EVENTS};q=0.3`, EVENTS],
    [`${BYTES};q=0.3, ${EVENTS};q=0.2`, BYTES],
    [BYTES, BYTES],
    [`${FRAMES}, ${JSON_TYPE};q=0.5`, FRAMES],
  ])('to "%s" with %s', async (accept, type) => {
    const path = '/servers/SERVER/exec'
    expect(await typeOf('POST', path, accept, { command: 'true' })).toBe(type)
    expect(await typeOf('POST', `${path}/stream?command=true`, accept)).toBe(type)
  })
})

describe('what can be followed is JSON unless the stream is preferred', () => {
  test.each([
    '/_berth/events',
    '/_berth/requests',
    '/_berth/inbox/some',
    '/servers/SERVER/usage',
    '/usage/servers',
  ])('%s', async (path) => {
    expect(await typeOf('GET', path, `${JSON_TYPE}, ${EVENTS}`)).toBe(JSON_TYPE)
    expect(await typeOf('GET', path, `${JSON_TYPE}, ${EVENTS};q=0.1`)).toBe(JSON_TYPE)
    expect(await typeOf('GET', path, `${JSON_TYPE};q=0.1, ${EVENTS}`)).toBe(EVENTS)
    expect(await typeOf('GET', path, EVENTS)).toBe(EVENTS)
  })

  test('the events of a task, and logs', async () => {
    const { task_id } = (await berth.call('POST', `/servers/${server}/tasks`, { goal: 'x' })).body
    const { id } = (await berth.call('POST', `/servers/${server}/projects`, {})).body
    for (const path of [`/servers/SERVER/tasks/${task_id}/events`, `/projects/${id}/logs`]) {
      expect(await typeOf('GET', path, `${JSON_TYPE}, ${EVENTS}`)).toBe(JSON_TYPE)
      expect(await typeOf('GET', path, EVENTS)).toBe(EVENTS)
    }
  })

  test('changes are a stream wherever one is accepted, because they have no other form', async () => {
    expect(await typeOf('GET', '/changes', `${JSON_TYPE}, ${EVENTS};q=0.1`)).toBe(EVENTS)
    const refused = await berth.fetch('/changes', { headers: { accept: `${EVENTS};q=0` } })
    expect(refused.status).toBe(426)
  })
})

describe('/mcp', () => {
  const call = async (accept: string, message: unknown): Promise<Response> =>
    berth.fetch('/mcp', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept },
      body: JSON.stringify(message),
    })
  const tool = (id: number, name: string, args: object, meta: object = {}) => ({
    ...{ jsonrpc: '2.0', id, method: 'tools/call' },
    params: { name, arguments: args, _meta: meta },
  })

  test.each([JSON_TYPE, 'application/*', `${JSON_TYPE}, ${EVENTS};q=0`])(
    'responds with JSON alone to "%s", also to a call that lasts and reports progress',
    async (accept) => {
      const args = { serverId: server, command: 'echo begun; sleep 1.2; echo done' }
      const response = await call(accept, tool(1, 'exec_run', args, { progressToken: 1 }))
      expect(response.headers.get('content-type')).toBe(JSON_TYPE)
      expect(await response.json()).toMatchObject({
        id: 1,
        result: { structuredContent: { stdout: 'begun\ndone\n' } },
      })
    },
  )

  test('responds to a batch with an array for a client that accepts JSON alone', async () => {
    const response = await call(JSON_TYPE, [
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      tool(2, 'templates_list', {}),
    ])
    const answers = (await response.json()) as { id: number }[]
    expect(answers.map(({ id }) => id).sort()).toEqual([1, 2])
  })

  test('responds to a wildcard, with a stream to what accepts no JSON, and with 406 to what accepts neither', async () => {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    expect(await (await call('*/*', ping)).json()).toMatchObject({ id: 1, result: {} })
    const stream = await call(EVENTS, tool(1, 'templates_list', {}))
    expect([stream.status, stream.headers.get('content-type')]).toEqual([200, EVENTS])
    await stream.body?.cancel()
    expect((await call('image/png', ping)).status).toBe(406)
  })
})
