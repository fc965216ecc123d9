import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { Visitor } from '../support/visitor.ts'

const berth = await berthForTests()

/** The answer to a request of a page's script. */
interface Sent {
  status: number
  message: string
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  body: any
}

/** Headers that a browser and a page of the instance add to a request. */
async function ownHeaders(browser: Visitor): Promise<Record<string, string>> {
  return {
    cookie: browser.cookie,
    'x-berth-csrf': await browser.csrf(),
    origin: browser.origin,
    'sec-fetch-site': 'same-origin',
  }
}

async function send(
  headers: Record<string, string>,
  method: string,
  path: string,
  body?: unknown,
): Promise<Sent> {
  const response = await fetch(`${berth.info.base_url}${path}`, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  const answer: any = await response.json()
  return { status: response.status, message: answer.message ?? '', body: answer }
}

const without = (headers: Record<string, string>, name: string): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([one]) => one !== name))

/** An account besides the first, with its key and a browser that a link has signed in to it. */
async function secondAccount(): Promise<{ id: string; key: string; browser: Visitor }> {
  const { body } = await berth.control('POST', '/accounts', { label: 'second' })
  return { id: body.id, key: body.api_key, browser: await Visitor.of(berth, body.id) }
}

async function signedInByKey(key: string): Promise<Visitor> {
  const browser = new Visitor(berth.info.base_url)
  await browser.post('/signin', { api_key: key })
  return browser
}

describe('the control API', () => {
  test('takes the session of a browser that a link signed in to the first account', async () => {
    const { accounts } = (await berth.control('GET', '/accounts')).body
    const first = accounts.at(-1).id
    for (const account of [undefined, first]) {
      const headers = await ownHeaders(await Visitor.of(berth, account))
      expect((await send(headers, 'GET', '/_berth/accounts')).status).toBe(200)
      const made = await send(headers, 'POST', '/_berth/accounts', { label: 'by a browser' })
      expect(made.status).toBe(201)
    }
    const started = new Visitor(berth.info.base_url)
    await started.get(berth.info.sign_in_url)
    expect((await send(await ownHeaders(started), 'GET', '/_berth/clock')).status).toBe(200)
  })

  test('takes no other session: of another account, or one that a key began', async () => {
    const second = await secondAccount()
    for (const browser of [
      second.browser,
      await signedInByKey(second.key),
      await signedInByKey(berth.info.api_key),
    ]) {
      const headers = await ownHeaders(browser)
      expect((await send(headers, 'GET', '/servers')).status).toBe(200)
      for (const [method, path, body] of [
        ['GET', '/_berth/accounts'],
        ['GET', '/_berth/requests'],
        ['POST', '/_berth/sign-in-links', {}],
      ] as const) {
        const answer = await send(headers, method, path, body)
        expect([answer.status, answer.message]).toEqual([403, expect.stringContaining('berth open')])
      }
      expect((await send(headers, 'GET', '/_berth/health')).status).toBe(200)
    }
  })
})

describe('the session of a browser', () => {
  test('with its token is a credential of the API, for its whole account', async () => {
    const headers = await ownHeaders(await Visitor.of(berth))
    const id = await berth.server()
    expect((await send(headers, 'GET', '/servers')).body.servers).toContainEqual(
      expect.objectContaining({ id }),
    )
    expect((await send(headers, 'POST', `/servers/${id}/exec`, { command: 'echo hi' })).body.stdout).toBe(
      'hi\n',
    )
    // An operation of the whole account. Programs and older browsers send neither of the headers.
    const plain = without(without(headers, 'origin'), 'sec-fetch-site')
    expect((await send(plain, 'GET', '/keys')).status).toBe(200)
  })

  test('has its token in no page that a cache may keep', async () => {
    for (const browser of [await Visitor.of(berth), (await secondAccount()).browser]) {
      const token = await browser.csrf()
      for (const path of ['/', '/access', '/docs', '/_berth/docs', '/docs/guide']) {
        const { text, headers } = await browser.get(path)
        if (text.includes(token)) expect([path, headers.get('cache-control')]).toEqual([path, 'no-store'])
      }
    }
  })

  test('leaves nothing of an answer in a cache', async () => {
    const id = await berth.server()
    await berth.call('PUT', `/servers/${id}/files`, { path: 'a.txt', content: 'a' })
    const headers = await ownHeaders(await Visitor.of(berth))
    for (const path of ['/servers', `/servers/${id}/files?path=a.txt`, '/nothing', '/_berth/accounts'])
      expect([
        path,
        (await fetch(`${berth.info.base_url}${path}`, { headers })).headers.get('cache-control'),
      ]).toEqual([path, 'no-store'])
  })

  test('reaches its own account alone', async () => {
    const { browser } = await secondAccount()
    const id = await berth.server()
    const headers = await ownHeaders(browser)
    expect((await send(headers, 'GET', '/servers')).body.servers).toEqual([])
    expect((await send(headers, 'GET', `/servers/${id}`)).status).toBe(404)
    expect((await send(headers, 'POST', `/servers/${id}/exec`, { command: 'id' })).status).toBe(404)
  })

  const refusals: readonly [
    what: string,
    status: number,
    remedy: RegExp,
    of: (headers: Record<string, string>) => Record<string, string>,
  ][] = [
    ['no token', 401, /x-berth-csrf/, (headers) => without(headers, 'x-berth-csrf')],
    [
      'an empty token',
      403,
      /another session. Reload the page/,
      (headers) => ({ ...headers, 'x-berth-csrf': '' }),
    ],
    ['a wrong token', 403, /Reload the page/, (headers) => ({ ...headers, 'x-berth-csrf': 'x'.repeat(43) })],
    [
      'a page of elsewhere',
      403,
      /another origin/,
      (headers) => ({ ...headers, origin: 'https://evil.example' }),
    ],
    ['a page without an address', 403, /another origin/, (headers) => ({ ...headers, origin: 'null' })],
    [
      'a page of another port of the host',
      403,
      /another origin/,
      (headers) => ({ ...headers, origin: `${headers.origin}0`, 'sec-fetch-site': 'same-site' }),
    ],
    [
      'a page of a project by name',
      403,
      /another origin/,
      (headers) => ({ ...headers, origin: (headers.origin ?? '').replace('//', '//app.') }),
    ],
    [
      'another page whose origin the browser leaves out',
      403,
      /another origin/,
      (headers) => ({ ...without(headers, 'origin'), 'sec-fetch-site': 'same-site' }),
    ],
    [
      'a name that resolves to this machine',
      403,
      /Host header/,
      (headers) => ({
        ...headers,
        host: `evil.example:${new URL(berth.info.base_url).port}`,
        origin: `http://evil.example:${new URL(berth.info.base_url).port}`,
      }),
    ],
    [
      'a session that is not there',
      401,
      /ended. Sign in again/,
      (headers) => ({ ...headers, cookie: `${headers.cookie?.slice(0, -3)}zzz` }),
    ],
  ]
  test.each(refusals)('opens neither API with %s', async (_, status, remedy, of) => {
    const headers = of(await ownHeaders(await Visitor.of(berth)))
    for (const [method, path, body] of [
      ['GET', '/servers'],
      ['POST', '/servers', {}],
      ['GET', '/_berth/accounts'],
      ['POST', '/_berth/reset', {}],
    ] as const) {
      const answer = await send(headers, method, path, body)
      expect([path, answer.status]).toEqual([path, status])
      // The control API refuses other pages before it looks at a credential.
      if (!path.startsWith('/_berth')) expect(answer.message).toMatch(remedy)
    }
  })

  test('counts for no simple request of another page, whatever its type says', async () => {
    const { cookie } = await Visitor.of(berth)
    const before = (await berth.call('GET', '/servers')).body.servers.length
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
      for (const path of ['/servers', '/keys', '/_berth/reset'])
        for (const site of ['same-site', 'cross-site', 'same-origin']) {
          const response = await fetch(`${berth.info.base_url}${path}`, {
            method: 'POST',
            headers: { cookie, 'content-type': type, 'sec-fetch-site': site },
            body: '{"label":"stolen"}',
          })
          expect([type, path, response.status]).toEqual([type, path, 401])
        }
    expect((await berth.call('GET', '/servers')).body.servers.length).toBe(before)
  })

  test('changes nothing without its token, also if the request calls itself a handshake', async () => {
    const headers = without(await ownHeaders(await Visitor.of(berth)), 'x-berth-csrf')
    for (const path of ['/keys', '/_berth/accounts']) {
      const request = [
        `POST ${path} HTTP/1.1`,
        `host: ${new URL(berth.info.base_url).host}`,
        ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
        'connection: close, upgrade',
        'upgrade: websocket',
        'content-type: application/json',
        'content-length: 18',
        '',
        '{"label":"stolen"}',
      ]
      const { promise, resolve } = Promise.withResolvers<string>()
      let answer = ''
      const { hostname, port } = new URL(berth.info.base_url)
      await Bun.connect({
        hostname,
        port: Number(port),
        socket: {
          open: (socket) => void socket.write(request.join('\r\n')),
          data(_, bytes) {
            answer += bytes.toString()
          },
          close: () => resolve(answer),
        },
      })
      expect(await promise).toStartWith('HTTP/1.1 401 ')
    }
  })

  test('lets no page of another origin ask first whether it may send the token', async () => {
    const { cookie } = await Visitor.of(berth)
    for (const path of ['/servers', '/_berth/accounts', '/access']) {
      const { headers } = await fetch(`${berth.info.base_url}${path}`, {
        method: 'OPTIONS',
        headers: {
          cookie,
          origin: 'http://127.0.0.1:1',
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'x-berth-csrf',
        },
      })
      expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })

  test('with the token of another session, or the sessions of two accounts, opens nothing', async () => {
    const [one, other, { browser }] = [
      await Visitor.of(berth),
      await Visitor.of(berth),
      await secondAccount(),
    ]
    const headers = await ownHeaders(one)
    expect((await send({ ...headers, cookie: other.cookie }, 'GET', '/servers')).status).toBe(403)
    for (const cookie of [`${one.cookie}; ${browser.cookie}`, `${browser.cookie}; ${one.cookie}`]) {
      const answer = await send({ ...headers, cookie }, 'GET', '/servers')
      expect([answer.status, answer.message]).toEqual([403, expect.stringContaining('two accounts')])
    }
    // Two of the same account: the token tells which.
    const both = `${other.cookie}; ${one.cookie}`
    expect((await send({ ...headers, cookie: both }, 'GET', '/servers')).status).toBe(200)
  })

  test('does not replace a wrong bearer token', async () => {
    const headers = await ownHeaders(await Visitor.of(berth))
    for (const authorization of ['Bearer sk_live_wrong', 'Basic eDp5', 'Bearer'])
      for (const path of ['/servers', '/_berth/accounts'])
        expect((await send({ ...headers, authorization }, 'GET', path)).status).toBe(401)
    const right = { ...headers, 'x-berth-csrf': 'wrong', authorization: `Bearer ${berth.info.api_key}` }
    expect((await send(right, 'GET', '/servers')).status).toBe(200)
  })

  test('is a credential of the MCP endpoint, from its own page and with its token alone', async () => {
    const browser = await Visitor.of(berth)
    const headers = { ...(await ownHeaders(browser)), accept: 'application/json, text/event-stream' }
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'keys_create', arguments: { label: 'by a tool' } },
    }
    const made = async (): Promise<number> =>
      (await berth.call('GET', '/keys')).body.keys.filter(
        ({ label }: { label: string }) => label === 'by a tool',
      ).length
    expect((await send(headers, 'POST', '/mcp', call)).status).toBe(200)
    expect(await made()).toBe(1)
    const other = await ownHeaders(await Visitor.of(berth))
    for (const [wrong, status] of [
      [without(headers, 'x-berth-csrf'), 401],
      [{ ...headers, 'x-berth-csrf': other['x-berth-csrf'] ?? '' }, 403],
      [{ ...headers, origin: 'http://127.0.0.1:1' }, 403],
      [{ ...without(headers, 'origin'), 'sec-fetch-site': 'same-site' }, 403],
      [{ ...headers, authorization: 'Bearer sk_live_wrong' }, 401],
    ] as const)
      expect((await send(wrong, 'POST', '/mcp', call)).status).toBe(status)
    await browser.submit('/signout')
    expect((await send(headers, 'POST', '/mcp', call)).status).toBe(401)
    expect(await made()).toBe(1)
  })

  test('ends at once for the API too, by signing out and with its key', async () => {
    const browser = await Visitor.of(berth)
    const headers = await ownHeaders(browser)
    await browser.submit('/signout')
    expect(await send(headers, 'GET', '/servers')).toMatchObject({
      status: 401,
      message: expect.stringContaining('berth open'),
    })
    const { body: key } = await berth.call('POST', '/keys', { label: 'begins a session' })
    const byKey = await ownHeaders(await signedInByKey(key.key))
    expect((await send(byKey, 'GET', '/servers')).status).toBe(200)
    await berth.call('DELETE', `/keys/${key.id}`)
    expect((await send(byKey, 'GET', '/servers')).status).toBe(401)
  })

  test('takes Idempotency-Key, meets faults that name the dashboard, and is in the journal as any credential', async () => {
    const headers = { ...(await ownHeaders(await Visitor.of(berth))), 'x-berth-client': 'dashboard' }
    const repeated = { ...headers, 'idempotency-key': 'once' }
    const first = await send(repeated, 'POST', '/keys', { label: 'once' })
    expect([first.status, (await send(repeated, 'POST', '/keys', { label: 'once' })).body]).toEqual([
      201,
      first.body,
    ])
    await berth.control('POST', '/faults', {
      match: { operation: 'servers.list', client: 'dashboard' },
      effect: { error: { status: 429 } },
      times: 1,
    })
    expect((await send(headers, 'GET', '/servers')).status).toBe(429)
    expect((await send(headers, 'GET', '/servers')).status).toBe(200)
    const { body } = await berth.control('GET', '/requests?operation=servers.list&limit=2')
    expect(body.requests).toMatchObject([
      { status: 200, api_key_id: expect.stringMatching(/^ses_/) },
      { status: 429, api_key_id: expect.stringMatching(/^ses_/) },
    ])
  })

  test('ends what it has begun when its account is deleted', async () => {
    const { id, browser } = await secondAccount()
    const headers = { ...(await ownHeaders(browser)), accept: 'text/event-stream' }
    const text = (await fetch(`${berth.info.base_url}/changes`, { headers })).text()
    await berth.control('DELETE', `/accounts/${id}`)
    expect(await text).toContain("browser's session that began this stream was ended")
  })

  test.each([
    ['it is signed out', (browser: Visitor) => browser.submit('/signout')],
    ['its age ends it', () => berth.control('POST', '/clock', { advance: '31d' })],
  ])('ends what it has begun when %s', async (_, end) => {
    const id = await berth.server()
    const browser = await Visitor.of(berth)
    const headers = { ...(await ownHeaders(browser)), accept: 'text/event-stream' }
    const streams = [
      await fetch(`${berth.info.base_url}/servers/${id}/exec`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ command: 'echo begun; sleep 300' }),
      }),
      await fetch(`${berth.info.base_url}/_berth/events`, { headers }),
    ]
    const texts = Promise.all(streams.map((stream) => stream.text()))
    await end(browser)
    for (const text of await texts)
      expect(text).toContain("browser's session that began this stream was ended")
  })
})
