import { describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { berthForTests } from '../support/berth.ts'

/* Nothing of a request is read otherwise than it was sent: what cannot be is refused by its name, and nothing is done. */

const berth = await berthForTests()
const server = await berth.server()

const JSON_TYPE = { 'content-type': 'application/json' }

/** Sends a request to the API, or with the admin token to the control API. */
const send = (
  method: string,
  path: string,
  body?: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
) => {
  const admin = path.startsWith('/_berth/') ? { authorization: `Bearer ${berth.info.admin_token}` } : {}
  return berth.fetch(path.replaceAll('SERVER', server), {
    method,
    headers: { ...admin, ...headers },
    ...(body === undefined ? {} : { body }),
  })
}

interface Refusal {
  error: string
  message: string
}

const refusal = async (response: Response): Promise<Refusal & { status: number }> => ({
  status: response.status,
  ...((await response.json()) as Refusal),
})

const files = async (): Promise<string[]> => (await berth.call('GET', `/servers/${server}/files`)).body.files

describe('a query', () => {
  test.each([
    ['POST', '/servers/SERVER/exec/stream?command=touch%20ran%', 'command'],
    ['POST', '/servers/SERVER/exec/stream?command=touch%20ran%ff', 'command'],
    ['GET', '/servers/SERVER/files?path=a%20b%zz.txt', 'path'],
    ['GET', '/servers/SERVER/files?path=%FCx.txt', 'path'],
    ['DELETE', '/servers/SERVER/files?path=%C0%AF', 'path'],
    ['GET', '/servers/SERVER/files?path=%ED%A0%80', 'path'],
    ['GET', '/servers?%zz=1', '%zz'],
    ['GET', '/_berth/requests?limit=1&operation=%E0%A4%A', 'operation'],
    ['GET', '/_berth/events?after=%', 'after'],
  ])('with malformed percent-encoding is 400 that names the parameter: %s %s', async (method, path, name) => {
    const { status, error, message } = await refusal(await send(method, path))
    expect({ status, error }).toEqual({ status: 400, error: 'bad_request' })
    expect(message).toStartWith(`"${name}" in the query is malformed: `)
    expect(await files()).not.toContain('ran')
  })

  test.each([
    ['GET', '/servers/SERVER/files?path=a&path=b', 'path'],
    ['DELETE', '/servers/SERVER/files?path=kept.txt&p%61th=kept.txt', 'path'],
    ['POST', '/servers/SERVER/exec/stream?command=touch%20ran&command=touch%20ran', 'command'],
    ['GET', '/_berth/requests?limit=1&limit=1', 'limit'],
    ['GET', '/_berth/wait?task=a&task=b', 'task'],
    ['GET', '/usage?days=1&days&', 'days'],
  ])('with a parameter twice is 400 that names it: %s %s', async (method, path, name) => {
    await send('PUT', '/servers/SERVER/files', JSON.stringify({ path: 'kept.txt', content: 'x' }), JSON_TYPE)
    expect(await refusal(await send(method, path))).toEqual({
      status: 400,
      error: 'bad_request',
      message: `"${name}" in the query is there twice: name it once.`,
    })
    expect(await files()).toContain('kept.txt')
    expect(await files()).not.toContain('ran')
  })

  test('that is well-formed means what it says', async () => {
    const path = 'a+b & 100% ü=.txt'
    await berth.call('PUT', `/servers/${server}/files`, { path, content: 'x' })
    const found = await send('GET', `/servers/SERVER/files?path=${encodeURIComponent(path)}`)
    expect(await found.json()).toEqual({ path, content: 'x' })
  })

  test('is looked into only after the credential', async () => {
    const response = await fetch(`${berth.info.base_url}/servers?x=%zz&x=%zz`)
    expect(response.status).toBe(401)
  })
})

describe('a body', () => {
  test.each([
    ['POST', '/servers', '{"task":"a","task":"a"}', 'task'],
    ['POST', '/servers/SERVER/exec', '{"command":"touch ran","env":{"A":"1","\\u0041":"2"}}', 'env.A'],
    ['PUT', '/secrets', '{"variables":{"__proto__":"1","__proto__":"2"}}', 'variables.__proto__'],
    ['POST', '/_berth/clock', '{"advance":"1s","advance":"2s"}', 'advance'],
  ])('with a field twice is 400 that names it: %s %s %s', async (method, path, body, name) => {
    expect(await refusal(await send(method, path, body, JSON_TYPE))).toEqual({
      status: 400,
      error: 'bad_request',
      message: `"${name}" in the body is there twice: name it once.`,
    })
    expect(await files()).not.toContain('ran')
  })

  test.each([
    [
      '/servers/SERVER/exec',
      '{"command":"touch ran","timeoutMs":9007199254740993}',
      'timeoutMs',
      '9007199254740993',
    ],
    ['/servers/SERVER/exec', '{"command":"touch ran","timeoutMs":1e400}', 'timeoutMs', '1e400'],
    [
      '/_berth/events',
      '{"event":"task.completed","data":{"list":[{"n":12345678901234567890}]}}',
      'data.list[0].n',
      '12345678901234567890',
    ],
  ])('with a number that JSON does not keep is 400 that quotes it: %s %s', async (path, body, name, sent) => {
    const { status, message } = await refusal(await send('POST', path, body, JSON_TYPE))
    expect(status).toBe(400)
    expect(message).toStartWith(`"${name}" in the body: expected a `)
    expect(message).toEndWith(`, got ${sent}.`)
    expect(await files()).not.toContain('ran')
  })

  test('is kept digit for digit up to the largest whole number', async () => {
    const data = { n: Number.MAX_SAFE_INTEGER, least: Number.MIN_SAFE_INTEGER, part: 0.1 }
    const { body } = await berth.control('POST', '/events', { event: 'task.completed', data })
    expect(body.data).toMatchObject(data)
  })

  test.each(['/_berth/health', '/_berth/ready', '/openapi.json', '/llms.txt', '/docs/guide', '/docs'])(
    'of what needs no credential is not read otherwise either: %s',
    async (path) => {
      for (const [query, fault] of [
        ['?q=%zz', '"q" in the query is malformed: '],
        ['?q=a&q=b', '"q" in the query is there twice'],
      ]) {
        const response = await fetch(`${berth.info.base_url}${path}${query}`)
        const { status, message } = await refusal(response)
        expect(status).toBe(400)
        expect(message).toStartWith(fault as string)
      }
    },
  )

  test('of the sign-in of a program is refused too, and who asked is not sent on', async () => {
    for (const query of ['client_id=%zz', 'client_id=a&client_id=b', 'client_id=%FF']) {
      const response = await fetch(`${berth.info.base_url}/oauth/authorize?${query}`, { redirect: 'manual' })
      expect([query, response.status]).toEqual([query, 400])
    }
  })

  test('a number in a query is quoted as it was sent', async () => {
    const { status, message } = await refusal(
      await send('POST', '/servers/SERVER/exec/stream?command=true&timeoutMs=9007199254740993'),
    )
    expect({ status, message }).toEqual({
      status: 400,
      message:
        '"timeoutMs" in the query: expected a whole number from 1 to 86400000, got "9007199254740993".',
    })
  })

  test('an Idempotency-Key may have commas, as one that is sent once can', async () => {
    const create = () => send('POST', '/servers', '{}', { ...JSON_TYPE, 'idempotency-key': 'one, two' })
    const [first, again] = [await create(), await create()]
    expect([first.status, again.status]).toEqual([201, 201])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    const made = (await first.json()) as { id: string }
    expect(await again.json()).toEqual(made)
    await berth.call('DELETE', `/servers/${made.id}`)
  })

  test.each([' ', '\n', ' \t\r\n '])('a body of white space alone counts as none: %j', async (body) => {
    const made = await send('POST', '/servers', body, JSON_TYPE)
    expect(made.status).toBe(201)
    await berth.call('DELETE', `/servers/${((await made.json()) as { id: string }).id}`)
    const { status, message } = await refusal(await send('PATCH', '/servers/SERVER', body, JSON_TYPE))
    expect([status, message]).toEqual([400, 'The body is missing: expected a JSON object.'])
  })

  test('of an inbox, and text in JSON, is not looked into', async () => {
    const inbox = await send('POST', '/_berth/inbox/exact?a=1&a=%zz', '{"a":1,"a":1e400}', JSON_TYPE)
    expect(inbox.status).toBe(200)
    const content = '{"a":1,"a":12345678901234567890}'
    await berth.call('PUT', `/servers/${server}/files`, { path: 'twice.json', content })
    const { body } = await berth.call('GET', `/servers/${server}/files?path=twice.json`)
    expect(body.content).toBe(content)
  })
})

describe('a content coding', () => {
  const zipped = new Uint8Array(gzipSync('{"task":"x"}'))

  test.each([
    ['POST', '/servers', 'gzip', JSON_TYPE],
    ['POST', '/servers', 'GZIP, identity', JSON_TYPE],
    ['POST', '/servers', 'x-gzip', JSON_TYPE],
    ['PUT', '/servers/SERVER/files', 'br', JSON_TYPE],
    ['POST', '/servers/SERVER/exec/stream?command=touch%20ran', 'zstd', {}],
    ['POST', '/servers/SERVER/deployments', 'deflate', {}],
    ['POST', '/_berth/clock', 'gzip', JSON_TYPE],
    ['POST', '/cli/token', 'gzip', JSON_TYPE],
  ])('is 415 that names it and the one that is accepted: %s %s %s', async (method, path, coding, headers) => {
    const response = await send(method, path, zipped, { ...headers, 'content-encoding': coding })
    expect(response.headers.get('accept-encoding')).toBe('identity')
    const { status, error, message } = await refusal(response)
    expect({ status, error }).toEqual({ status: 415, error: 'unsupported_media_type' })
    expect(message).toContain(`"Content-Encoding: ${coding.split(',')[0]}"`)
    expect(await files()).not.toContain('ran')
  })

  test.each(['identity', 'Identity', 'identity, identity', ''])('%p is none', async (coding) => {
    const response = await send('POST', '/servers', '{"task":"x"}', {
      ...JSON_TYPE,
      'content-encoding': coding,
    })
    expect(response.status).toBe(201)
  })

  test('is kept with the body in an inbox', async () => {
    const path = '/_berth/inbox/coded'
    expect((await send('POST', path, zipped, { 'content-encoding': 'gzip' })).status).toBe(200)
    const { body } = await berth.control('GET', '/inbox/coded')
    expect(Buffer.from(body.entries[0].body, 'base64')).toEqual(Buffer.from(zipped))
  })

  test('at /mcp and /oauth is 415 in their own forms', async () => {
    const headers = {
      ...JSON_TYPE,
      accept: 'application/json, text/event-stream',
      'content-encoding': 'gzip',
    }
    const mcp = await send('POST', '/mcp', zipped, headers)
    expect(mcp.status).toBe(415)
    expect(mcp.headers.get('accept-encoding')).toBe('identity')
    expect(await mcp.json()).toMatchObject({ error: { code: -32600 } })
    for (const path of ['/oauth/register', '/oauth/token']) {
      const type = path.endsWith('token') ? 'application/x-www-form-urlencoded' : 'application/json'
      const response = await send('POST', path, zipped, { 'content-type': type, 'content-encoding': 'gzip' })
      expect(response.status).toBe(415)
      expect(response.headers.get('accept-encoding')).toBe('identity')
      expect(await response.json()).toMatchObject({ error: 'invalid_request' })
    }
  })
})

describe('/mcp and /oauth', () => {
  test.each([
    ['/mcp', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', '9007199254740993'],
    ['/mcp', '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', '"id" in the body is there twice'],
    ['/mcp?tools=core&tools=core', '{"jsonrpc":"2.0","id":1,"method":"ping"}', '"tools" in the query'],
    ['/mcp?x=%', '{"jsonrpc":"2.0","id":1,"method":"ping"}', '"x" in the query is malformed'],
  ])('refuse a message as an invalid request of JSON-RPC: %s %s', async (path, body, expected) => {
    const response = await send('POST', path, body, {
      ...JSON_TYPE,
      accept: 'application/json, text/event-stream',
    })
    expect(response.status).toBe(400)
    const answer = (await response.json()) as { id: null; error: { code: number; message: string } }
    expect(answer).toMatchObject({ id: null, error: { code: -32600 } })
    expect(answer.error.message).toContain(expected)
  })

  test.each([
    ['grant_type=%zz', "'grant_type' in the body is malformed"],
    ['grant_type=a&grant%5Ftype=b', "'grant_type' in the body is there twice"],
  ])('refuse a form as an invalid request of OAuth: %s', async (form, expected) => {
    const response = await send('POST', '/oauth/token', form, {
      'content-type': 'application/x-www-form-urlencoded',
    })
    expect(response.status).toBe(400)
    const answer = (await response.json()) as { error: string; error_description: string }
    expect(answer.error).toBe('invalid_request')
    expect(answer.error_description).toContain(expected)
  })
})

describe('a rule of a text is in the document, and holds', () => {
  test('a goal has at most 100,000 characters', async () => {
    for (const path of ['tasks', 'builds']) {
      const goal = 'x'.repeat(100_001)
      const { status, message } = await refusal(
        await send('POST', `/servers/SERVER/${path}`, JSON.stringify({ goal }), JSON_TYPE),
      )
      expect(status).toBe(400)
      expect(message).toStartWith('"goal" in the body: expected a string of 1 to 100000 characters')
    }
  })

  test.each(['', 'yesterday', '2026-13-01T00:00:00Z', '2026-01-01T00:00:00', '-5m', '5w'])(
    'a log has no lines since "%s"',
    async (since) => {
      const { id } = (await berth.call('POST', `/servers/${server}/projects`, {})).body
      const { status, message } = await refusal(
        await send('GET', `/projects/${id}/logs?since=${encodeURIComponent(since)}`),
      )
      await berth.call('DELETE', `/projects/${id}`)
      expect(status).toBe(400)
      expect(message).toStartWith(
        '"since" in the query: expected a time such as 2026-01-31T12:00:00Z, or a duration',
      )
    },
  )

  test.each(['10m', '90', '1.5h', '250ms', '2026-01-31T12:00:00Z', '2026-01-31 12:00:00.5+01:00'])(
    'a log has lines since %s',
    async (since) => {
      const { id } = (await berth.call('POST', `/servers/${server}/projects`, {})).body
      expect((await send('GET', `/projects/${id}/logs?since=${encodeURIComponent(since)}`)).status).toBe(200)
      await berth.call('DELETE', `/projects/${id}`)
    },
  )
})
