import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect as open } from 'node:net'
import { berthForTests } from '../../support/berth.ts'
import { connect, failureOf, type McpClient } from './clients.ts'
import { messageOf, send } from './raw.ts'

const berth = await berthForTests()
const server = await berth.server()
await berth.call('PUT', `/servers/${server}/files`, { path: 'secret.txt', content: 'mine' })

/** Sends a request by hand, byte for byte. */
const raw = (head: string, body = ''): Promise<string> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(berth.info.base_url)
    const socket = open(Number(port), hostname, () =>
      socket.write(`${head}\r\nConnection: close\r\n\r\n${body}`),
    )
    let answer = ''
    socket.setEncoding('utf8').on('data', (chunk) => {
      answer += chunk
    })
    socket.on('close', () => resolve(answer)).on('error', reject)
  })

describe('who may ask', () => {
  const metadata = () => `resource_metadata="${berth.info.base_url}/.well-known/oauth-protected-resource/mcp"`

  test('without a credential: 401, which says where one gets one', async () => {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const answer = await fetch(berth.info.mcp_url, { method })
      expect(answer.status).toBe(401)
      expect(answer.headers.get('www-authenticate')).toBe(`Bearer ${metadata()}`)
      expect(await answer.json()).toMatchObject({ error: 'missing_or_invalid_api_key' })
    }
  })

  test('with a wrong one: 401, which says that it is invalid', async () => {
    const headers = { authorization: `Bearer sk_live_${'x'.repeat(43)}` }
    const answer = await fetch(berth.info.mcp_url, { method: 'POST', headers })
    expect(answer.status).toBe(401)
    expect(answer.headers.get('www-authenticate')).toBe(`Bearer error="invalid_token", ${metadata()}`)
  })

  test('a key in the URL opens nothing', async () => {
    for (const name of ['api_key', 'access_token', 'key']) {
      const answer = await fetch(`${berth.info.mcp_url}?${name}=${berth.info.api_key}`, { method: 'POST' })
      expect(answer.status).toBe(401)
    }
  })

  test('a deleted key opens nothing any more, not even in a session that it began', async () => {
    const { id, key } = (await berth.call('POST', '/keys', { label: 'short-lived' })).body
    await using mcp = await connect(berth, 'v1', key)
    await mcp.call('servers_list')
    await berth.call('DELETE', `/keys/${id}`)
    await expect(mcp.call('servers_list')).rejects.toThrow()
  })

  test('the admin token opens nothing', async () => {
    const headers = { authorization: `Bearer ${berth.info.admin_token}` }
    expect((await fetch(berth.info.mcp_url, { method: 'POST', headers })).status).toBe(401)
  })
})

describe('pages of others', () => {
  test.each(['http://evil.example', 'null', 'http://127.0.0.1', 'https://127.0.0.1', 'http://localhost:1'])(
    'the origin %s is refused before anything is looked at',
    async (origin) => {
      for (const init of [
        { method: 'POST', headers: { origin } },
        { method: 'GET', headers: { origin } },
        { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST' } },
      ]) {
        const answer = await berth.fetch('/mcp', init)
        expect(answer.status).toBe(403)
        expect(await answer.json()).toMatchObject({ error: 'forbidden' })
        expect(answer.headers.get('access-control-allow-origin')).toBeNull()
      }
    },
  )

  test('the own origin is let in, and so is a program, which sends none', async () => {
    const answer = await send(berth, 'tools/list', {}, { origin: berth.info.base_url })
    expect(answer.status).toBe(200)
    expect((await send(berth, 'tools/list')).status).toBe(200)
  })

  test('a foreign Host is refused, which stops DNS rebinding, even with an Origin that fits it', async () => {
    const { port } = new URL(berth.info.base_url)
    for (const host of ['evil.example', `evil.example:${port}`, 'localhost.evil.example']) {
      const answer = await raw(
        `POST /mcp HTTP/1.1\r\nHost: ${host}\r\nOrigin: http://${host}\r\nAuthorization: Bearer ${berth.info.api_key}\r\nContent-Length: 0`,
      )
      expect(answer).toMatch(/^HTTP\/1\.1 403 /)
      expect(answer).toContain('"forbidden"')
    }
  })
})

describe('a scoped key', () => {
  let mcp: McpClient
  let own: string
  beforeAll(async () => {
    own = await berth.server({ task: 'own' })
    await berth.call('PUT', `/servers/${own}/files`, { path: 'own.txt', content: 'own' })
    const wishes = { label: 'scoped', allowed_server_ids: [own] }
    mcp = await connect(berth, 'v2', (await berth.call('POST', '/keys', wishes)).body.key)
  })
  afterAll(() => mcp[Symbol.asyncDispose]())

  test('is shown no tool that needs the whole account, and is refused by one', async () => {
    const { tools } = await mcp.client.listTools()
    const names = tools.map(({ name }: { name: string }) => name)
    expect(names).not.toContain('servers_create')
    expect(names.filter((name: string) => /^(keys|webhooks)_/.test(name))).toEqual([])
    expect(names).toContain('exec_run')
    expect(failureOf(await mcp.call('servers_create'))).toMatchObject({ error: 'forbidden', status: 403 })
    expect(failureOf(await mcp.call('keys_list'))).toMatchObject({ error: 'forbidden', status: 403 })
  })

  test('sees its own servers alone: in tools, resources and completion', async () => {
    const { structuredContent } = await mcp.call('servers_list')
    expect(structuredContent.servers.map(({ id }: { id: string }) => id)).toEqual([own])
    expect(failureOf(await mcp.call('servers_get', { serverId: server })).error).toBe('not_found')
    const { resources } = await mcp.client.listResources()
    expect(resources.map(({ uri }: { uri: string }) => uri)).toEqual([`berth://servers/${own}/files/own.txt`])
    const ref = { type: 'ref/resource', uri: 'berth://servers/{serverId}/files/{+path}' }
    const ids = await mcp.client.complete({ ref, argument: { name: 'serverId', value: '' } })
    expect(ids.completion.values).toEqual([own])
    const context = { arguments: { serverId: server } }
    const paths = await mcp.client.complete({ ref, argument: { name: 'path', value: '' }, context })
    expect(paths.completion.values).toEqual([])
  })

  test.each([
    ['another server', () => `berth://servers/${server}/files/secret.txt`],
    ['a path that leads there', () => `berth://servers/${own}/files/../../${server}/files/secret.txt`],
    ['the same, escaped', () => `berth://servers/${own}/files/%2e%2e/%2e%2e/${server}/files/secret.txt`],
    ['an id that leads there', () => `berth://servers/${own}%2F..%2F${server}/files/secret.txt`],
    ['an id of dots', () => 'berth://servers/../files/secret.txt'],
    ['an id of escaped dots', () => 'berth://servers/%2e%2e/files/secret.txt'],
    ['an id of one dot', () => `berth://servers/./files/secret.txt`],
    ['bytes that are no text', () => 'berth://servers/%ff/files/secret.txt'],
    ['a query', () => `berth://servers/${own}/files/own.txt?path=secret.txt`],
    ['a file of this machine', () => `berth://servers/${own}/files//etc/passwd`],
    ['another scheme', () => 'file:///etc/passwd'],
  ])('reads nothing through a resource with %s', async (_, uri) => {
    const error = await mcp.client.readResource({ uri: uri() }).catch((thrown: unknown) => thrown)
    expect(error.code).toBe(-32602)
  })

  test.each([
    ['dots', '..'],
    ['escaped dots', '%2e%2e'],
    ['one dot', '.'],
    ['nothing', ''],
    ['slashes', '../../keys'],
    ['an escaped slash', '..%2f..%2fkeys'],
    ['a backslash', '..\\..\\keys'],
    ['a query', 'x?path=y'],
    ['a fragment', 'x#y'],
    ['a line end', 'x\r\nX-Injected: 1'],
    ['half a character', '\ud800'],
    ['a number', 5],
    ['an object', { toString: 'x' }],
  ])('an id with %s stays one segment, which names nothing', async (_, serverId) => {
    for (const tool of ['servers_get', 'files_read', 'servers_delete']) {
      const { error, status } = failureOf(await mcp.call(tool, { serverId }))
      expect([400, 404]).toContain(status)
      expect(['bad_request', 'not_found']).toContain(error)
    }
    // Nothing but the calls on servers has reached the API.
    const { body } = await berth.control('GET', '/requests?limit=3')
    for (const { path } of body.requests) expect(path).toMatch(/^\/servers\/[^/?]+(?:\/files)?(?:\?|$)/)
  })

  test('an argument that an operation does not have is refused, and does not reach its query', async () => {
    const result = await mcp.call('servers_get', { serverId: own, path: 'x' })
    expect(failureOf(result)).toMatchObject({ error: 'bad_request', status: 400 })
    expect(failureOf(await mcp.call('servers_get', {})).message).toContain('"serverId"')
  })

  test('a session belongs to its key: another calls nothing of it off', async () => {
    await using one = await connect(berth, 'v1', berth.info.api_key)
    const session = one.client.transport.sessionId
    const command = 'touch begun; while [ ! -e on ]; do sleep 0.01; done; echo through'
    const running = one.call('exec_run', { serverId: own, command })
    while ((await berth.call('GET', `/servers/${own}/files?path=begun`)).status !== 200) await Bun.sleep(10)
    const stranger = (await berth.call('POST', '/keys', { label: 'stranger' })).body.key
    const headers = {
      authorization: `Bearer ${stranger}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': session,
    }
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }
    for (let requestId = 0; requestId < 5; requestId++) {
      const body = JSON.stringify({ ...cancelled, params: { requestId } })
      await fetch(berth.info.mcp_url, { method: 'POST', headers, body })
    }
    expect((await fetch(berth.info.mcp_url, { method: 'DELETE', headers })).status).toBe(200)
    await berth.call('PUT', `/servers/${own}/files`, { path: 'on', content: '' })
    expect((await running).structuredContent.stdout).toBe('through\n')
  })
})

describe('what is sent', () => {
  const post = (body: string | Uint8Array<ArrayBuffer> | ReadableStream, type = 'application/json') =>
    berth.fetch('/mcp', {
      method: 'POST',
      body,
      headers: { 'content-type': type, accept: 'application/json, text/event-stream' },
    })

  test('over 32 MiB is 413 in the words of the API, with a declared length and without', async () => {
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', x: 'x'.repeat(33 * 1024 * 1024) })
    for (const body of [text, new Blob([text]).stream()]) {
      const answer = await post(body)
      expect(answer.status).toBe(413)
      expect(await answer.json()).toMatchObject({ error: 'payload_too_large' })
    }
  })

  test('30 MiB of a file go through', async () => {
    const given = { serverId: server, path: 'big', content: 'x'.repeat(30 * 1024 * 1024) }
    const answer = await send(berth, 'tools/call', { name: 'files_write', arguments: given })
    expect((await messageOf(answer)).result.structuredContent).toEqual({ path: 'big', written: true })
    await berth.call('DELETE', `/servers/${server}/files?path=big`)
  })

  test.each([
    ['malformed JSON', '{"jsonrpc":', -32700],
    ['nothing', '', -32700],
    ['bytes that are no UTF-8', new Uint8Array([0x22, 0xff, 0x22]), -32700],
    ['a text', '"x"', -32600],
    ['null', 'null', -32600],
    ['no version', '{"id":1,"method":"ping"}', -32600],
    ['an empty batch', '[]', -32600],
    ['100,000 levels', '['.repeat(100_000), -32700],
  ])('%s is an error of JSON-RPC, and berth goes on', async (_, body, code) => {
    const answer = await post(body)
    expect(answer.status).toBe(400)
    const { jsonrpc, error } = (await answer.json()) as { jsonrpc: string; error: { code: number } }
    expect(jsonrpc).toBe('2.0')
    expect([code, -32700]).toContain(error.code)
    expect((await send(berth, 'tools/list')).status).toBe(200)
  })

  test('another content type is 415', async () => {
    expect((await post('a=b', 'application/x-www-form-urlencoded')).status).toBe(415)
  })

  test('GET and methods of no protocol are 405 with what is allowed', async () => {
    for (const method of ['GET', 'PUT', 'PATCH', 'OPTIONS']) {
      const answer = await berth.fetch('/mcp', { method, headers: { accept: 'text/event-stream' } })
      expect(answer.status).toBe(405)
      expect(answer.headers.get('allow')).toBe('POST, DELETE')
      expect(await answer.json()).toMatchObject({ error: 'method_not_allowed' })
      const headers = { authorization: 'Bearer none' }
      expect((await berth.fetch('/mcp', { method, headers })).status).toBe(401)
    }
  })

  test('DELETE without a session is refused with what is missing', async () => {
    const answer = await berth.fetch('/mcp', { method: 'DELETE' })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ message: expect.stringContaining('Mcp-Session-Id') })
  })

  test('no answer shows a stack, a path of this machine or a key', async () => {
    const answers = [
      await send(berth, 'tools/call', { name: 'exec_run', arguments: { serverId: {}, command: [] } }),
      await send(berth, 'tools/call', { name: '__proto__', arguments: {} }),
      await send(berth, 'tools/call', { name: 'exec_run', arguments: 5 }),
      await send(berth, 'resources/read', { uri: 'x'.repeat(10_000) }),
      await send(berth, 'completion/complete', { ref: {}, argument: {} }),
      await send(berth, 'prompts/get', { name: 'constructor' }),
      await send(berth, 'no/such'),
    ]
    for (const answer of answers) {
      const text = await answer.text()
      expect(text).not.toMatch(/node_modules|\.ts:\d+|\.mjs|sk_live_/)
      expect(text).not.toContain(berth.dataDir)
    }
  })

  test('the journal keeps the calls as what they are at the API, with no credential', async () => {
    await send(berth, 'tools/call', { name: 'servers_get', arguments: { serverId: server } })
    const { body } = await berth.control('GET', '/requests?limit=1')
    expect(body.requests[0]).toMatchObject({ method: 'GET', path: `/servers/${server}`, status: 200 })
    expect(JSON.stringify(body)).not.toContain(berth.info.api_key)
    expect(berth.log()).not.toContain(berth.info.api_key)
  })
})
