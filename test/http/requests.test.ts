import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { berthForTests, executable } from '../support/berth.ts'
import { until } from '../support/processes.ts'

const berth = await berthForTests()
const server = await berth.server()

const raw = (text: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const { port, hostname } = new URL(berth.info.base_url)
    const socket = connect(Number(port), hostname, () => socket.write(text))
    let answer = ''
    socket.setEncoding('utf8').on('data', (chunk) => {
      answer += chunk
    })
    socket.on('close', () => resolve(answer)).on('error', reject)
  })

describe('credentials', () => {
  test.each([
    ['none', {}],
    ['an unknown key', { authorization: `Bearer sk_live_${'x'.repeat(43)}` }],
    ['another scheme', { authorization: 'Basic dXNlcjpwYXNz' }],
    ['no token', { authorization: 'Bearer ' }],
    ['two words', { authorization: 'Bearer a b' }],
  ])('%s: 401 with the code of the specification', async (_name, headers: Record<string, string>) => {
    const response = await fetch(`${berth.info.base_url}/servers`, { headers })
    expect(response.status).toBe(401)
    expect(((await response.json()) as { error: string }).error).toBe('missing_or_invalid_api_key')
  })

  test('the scheme may be written in any case (RFC 9110, 11.1)', async () => {
    const response = await berth.fetch('/servers', {
      headers: { authorization: `bearer ${berth.info.api_key}` },
    })
    expect(response.status).toBe(200)
  })

  test('a key in the URL opens nothing', async () => {
    const response = await fetch(`${berth.info.base_url}/servers?api_key=${berth.info.api_key}`)
    expect(response.status).toBe(401)
  })

  test('the admin token is not an API key', async () => {
    const response = await berth.fetch('/servers', {
      headers: { authorization: `Bearer ${berth.info.admin_token}` },
    })
    expect(response.status).toBe(401)
  })

  test('come before everything else of the request: malformed JSON, shape, resource', async () => {
    for (const [path, body] of [
      ['/servers', '{bad'],
      ['/servers', '{"tier":"huge"}'],
      ['/servers/srv_none/exec', '{}'],
    ]) {
      const response = await fetch(`${berth.info.base_url}${path}`, {
        method: 'POST',
        body: body ?? '',
        headers: { 'content-type': 'application/json' },
      })
      expect(response.status).toBe(401)
    }
  })
})

describe('bodies', () => {
  const post = (body: string, headers: Record<string, string> = { 'content-type': 'application/json' }) =>
    berth.fetch('/servers', { method: 'POST', body, headers })

  test.each([
    ['malformed JSON', '{"task":'],
    ['an array', '[]'],
    ['a number', '5'],
    ['null', 'null'],
    ['a text', '"task"'],
  ])('%s is 400', async (_name, text) => {
    const response = await post(text)
    expect(response.status).toBe(400)
    expect(((await response.json()) as { error: string }).error).toBe('bad_request')
  })

  test('one nested too deeply is refused before anything goes down into it, whatever stands in its texts', async () => {
    const nested = (levels: number) => `{"task":${'['.repeat(levels)}${']'.repeat(levels)}}`
    for (const levels of [64, 100_000]) {
      const response = await post(nested(levels))
      expect(response.status).toBe(400)
      expect(((await response.json()) as { message: string }).message).toContain('at most 64 levels')
    }
    expect(((await (await post(nested(63))).json()) as { message: string }).message).toContain('"task"')
    const made = await post(JSON.stringify({ task: `${'['.repeat(100)}\\"${'{'.repeat(100)}` }))
    expect(made.status).toBe(201)
  })

  test('bytes that are not UTF-8 are 400', async () => {
    const body = new Uint8Array([...Buffer.from('{"task":"'), 0xff, 0xfe, ...Buffer.from('"}')])
    const headers = { 'content-type': 'application/json' }
    expect((await berth.fetch('/servers', { method: 'POST', body, headers })).status).toBe(400)
  })

  test('a body that claims to be enormous is refused in the usual words, after the credential', async () => {
    const claim = (key: string) =>
      raw(
        `POST /servers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n` +
          'Content-Type: application/json\r\nContent-Length: 90000000\r\n\r\n{',
      )
    expect(await claim(berth.info.api_key)).toMatch(/ 413 [\s\S]*x-request-id[\s\S]*payload_too_large/i)
    expect(await claim('sk_live_wrong')).toMatch(/ 401 [\s\S]*missing_or_invalid_api_key/)
  })

  test('another content type is 400 and says which one is wanted', async () => {
    const response = await post('task=x', { 'content-type': 'application/x-www-form-urlencoded' })
    expect(response.status).toBe(400)
    expect(((await response.json()) as { message: string }).message).toContain('application/json')
  })

  test('a charset beside the content type is fine', async () => {
    expect((await post('{}', { 'content-type': 'application/json; charset=utf-8' })).status).toBe(201)
  })

  test('shape comes before resource: a bad body for a missing server is 400', async () => {
    expect((await berth.call('POST', '/servers/srv_none/exec', { command: 5 })).status).toBe(400)
    expect((await berth.call('POST', '/servers/srv_none/exec', { command: 'true' })).status).toBe(404)
  })

  test('over 32 MiB is 413, with a declared length and without', async () => {
    const text = JSON.stringify({ path: 'big', content: 'x'.repeat(33 * 1024 * 1024) })
    const headers = { 'content-type': 'application/json' }
    const declared = await berth.fetch(`/servers/${server}/files`, { method: 'PUT', body: text, headers })
    expect(declared.status).toBe(413)
    expect(((await declared.json()) as { error: string }).error).toBe('payload_too_large')
    const stream = new Blob([text]).stream()
    const chunked = await berth.fetch(`/servers/${server}/files`, { method: 'PUT', body: stream, headers })
    expect(chunked.status).toBe(413)
  })

  test('30 MiB are taken', async () => {
    const content = 'x'.repeat(30 * 1024 * 1024)
    expect((await berth.call('PUT', `/servers/${server}/files`, { path: 'big', content })).status).toBe(201)
  })
})

describe('paths and methods', () => {
  test('an unknown path is 404 not_found', async () => {
    const { status, body } = await berth.call('GET', '/nothing/here')
    expect(status).toBe(404)
    expect(body.error).toBe('not_found')
  })

  test.each([
    ['PUT', '/servers', 'GET, POST, HEAD'],
    ['POST', '/servers/x', 'GET, PATCH, DELETE, HEAD'],
    ['GET', '/servers/x/exec', 'POST'],
    ['OPTIONS', '/servers', 'GET, POST, HEAD'],
  ])('%s %s is 405 with Allow', async (method, path, allow) => {
    const { status, body, headers } = await berth.call(method, path)
    expect(status).toBe(405)
    expect(body.error).toBe('method_not_allowed')
    expect(headers.get('allow')).toBe(allow)
  })

  test('two slashes at the beginning are not the path of an operation', async () => {
    // Over a socket: clients take one of them away.
    const { host } = new URL(berth.info.base_url)
    const answer = await raw(
      `GET //servers HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${berth.info.api_key}\r\nConnection: close\r\n\r\n`,
    )
    expect(answer).toStartWith('HTTP/1.1 404 ')
    expect(answer).toContain('no path has a slash at its end or two in a row. Ask for /servers.')
  })

  test.each(['/servers/', '/servers//', '/servers//exec', '/servers/?x=1'])(
    '%s is another path',
    async (path) => {
      expect((await berth.call('GET', path)).status).toBe(404)
    },
  )

  test('HEAD answers like GET, without a body', async () => {
    const response = await berth.fetch('/servers', { method: 'HEAD' })
    expect(response.status).toBe(200)
    expect(await response.text()).toBe('')
  })

  test('an id with invalid percent-encoding names nothing', async () => {
    expect((await berth.call('GET', '/servers/%ff')).status).toBe(404)
  })

  test('every answer carries an x-request-id of its own, failures too', async () => {
    const ids = new Set<string | null>()
    for (const path of ['/servers', '/nothing', '/servers/none', '/_berth/health']) {
      ids.add((await berth.fetch(path)).headers.get('x-request-id'))
    }
    expect(ids.size).toBe(4)
    for (const id of ids) expect(id).toMatch(/^req_[0-9a-z]{26}$/)
  })

  test('no CORS header is sent', async () => {
    const response = await berth.fetch('/servers', { headers: { origin: 'http://evil.example' } })
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  })
})

describe('the Host header', () => {
  const status = async (host: string) => {
    const answer = await raw(
      `GET /servers HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${berth.info.api_key}\r\nConnection: close\r\n\r\n`,
    )
    return Number(answer.split(' ')[1])
  }

  test.each([
    'localhost',
    'localhost:4747',
    '127.0.0.1',
    '127.8.8.8:1',
    '[::1]:80',
    'app.localhost',
    'LOCALHOST.',
  ])('%s is ours', async (host) => {
    expect(await status(host)).toBe(200)
  })

  test.each(['localhost:99999', '127.0.0.08', 'a:b.localhost', 'xn--a.localhost'])(
    '%s is refused: a URL cannot have it',
    async (host) => {
      expect(await status(host)).toBe(403)
    },
  )

  test.each(['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', '10.0.0.1', 'notlocalhost'])(
    '%s is refused, which stops DNS rebinding',
    async (host) => {
      expect(await status(host)).toBe(403)
    },
  )
})

describe('Idempotency-Key', () => {
  test('the same key with the same body gets the first answer and makes one server', async () => {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const before = (await berth.call('GET', '/servers')).body.servers.length
    const answers = await Promise.all(
      [1, 2, 3].map(() => berth.call('POST', '/servers', { task: 'once' }, headers)),
    )
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    expect((await berth.call('GET', '/servers')).body.servers.length).toBe(before + 1)
  })

  test('the same key with another body is 400', async () => {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    await berth.call('POST', '/servers', { task: 'one' }, headers)
    expect((await berth.call('POST', '/servers', { task: 'two' }, headers)).status).toBe(400)
  })

  test('a request that failed in its operation holds nobody up', async () => {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const path = '/servers/srv_none/exec'
    const answers = await Promise.all(
      [1, 2, 3].map(() => berth.call('POST', path, { command: 'true' }, headers)),
    )
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404])
    expect((await berth.call('POST', path, { command: 'true' }, headers)).status).toBe(404)
  })

  test('a streamed answer cannot be repeated, which is said', async () => {
    const headers = {
      'idempotency-key': crypto.randomUUID(),
      accept: 'text/event-stream',
      'content-type': 'application/json',
    }
    const run = () =>
      berth.fetch(`/servers/${server}/exec`, { method: 'POST', headers, body: '{"command":"echo hi"}' })
    expect(await (await run()).text()).toContain('event: exit')
    const again = await run()
    expect(again.status).toBe(400)
    expect(await again.text()).toContain('stream')
  })

  test('an answer whose client was gone is not kept', async () => {
    const headers = { 'idempotency-key': crypto.randomUUID(), 'content-type': 'application/json' }
    const gone = new AbortController()
    const body = JSON.stringify({
      command: 'echo x >> tries; [ $(wc -l < tries) -gt 1 ] || sleep 20; echo done',
    })
    const path = `/servers/${server}/exec`
    const first = berth.fetch(path, { method: 'POST', headers, body, signal: gone.signal })
    const tries = () => berth.call('GET', `/servers/${server}/files?path=tries`)
    await until(async () => (await tries()).status === 200, 'the command runs')
    gone.abort()
    await expect(first).rejects.toThrow()
    const again = await berth.fetch(path, { method: 'POST', headers, body })
    expect(await again.json()).toMatchObject({ stdout: 'done\n', exitCode: 0 })
  })

  test('the order of fields, nested ones too, makes no other request', async () => {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const path = `/servers/${server}/exec`
    await berth.call('POST', path, { command: 'true', env: { A: '1', B: '2' } }, headers)
    const again = await berth.call('POST', path, { env: { B: '2', A: '1' }, command: 'true' }, headers)
    expect(again.status).toBe(200)
  })

  test('a refused request can be tried again with the same key', async () => {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    expect((await berth.call('POST', '/servers', { tier: 'huge' }, headers)).status).toBe(400)
    expect((await berth.call('POST', '/servers', { tier: 'small' }, headers)).status).toBe(201)
  })
})

test('the log of a debugging person has every request, and never a key', async () => {
  const response = await berth.fetch(`/servers?key=${berth.info.api_key}`)
  const id = response.headers.get('x-request-id') ?? ''
  if (executable) await until(() => berth.log().includes(id), 'the request is logged')
  expect(berth.log()).not.toContain(berth.info.api_key)
  expect(berth.log()).not.toContain(berth.info.admin_token)
})
