import { beforeEach, describe, expect, test } from 'bun:test'
import { berthForTests, testBerth } from '../../support/berth.ts'
import { readEvents } from '../../support/events.ts'

const berth = await berthForTests()
const server = await berth.server()
beforeEach(async () => {
  await berth.control('DELETE', '/requests')
})

/** What the journal shows, oldest first. */
const journal = async (query = '') =>
  (await berth.control('GET', `/requests${query}`)).body.requests.reverse()
const last = async () => (await journal()).at(-1)

describe('an entry', () => {
  test('says what was asked, by whom, what came of it, and under which id', async () => {
    const answer = await berth.call('POST', `/servers/${server}/exec?x=1`, { command: 'echo hi' })
    const { accounts } = (await berth.control('GET', '/accounts')).body
    const { keys } = (await berth.call('GET', '/keys')).body
    expect((await journal())[0]).toEqual({
      said: null,
      id: answer.headers.get('x-request-id'),
      at: expect.stringMatching(/^\d{4}-.*Z$/),
      method: 'POST',
      path: `/servers/${server}/exec?x=1`,
      status: 200,
      ms: expect.any(Number),
      operation: 'exec.run',
      account_id: accounts[0].id,
      api_key_id: keys[0].id,
      client: null,
      aborted: false,
      request: { body: { command: 'echo hi' }, truncated: false },
      response: { body: answer.body, truncated: false },
      request_headers: expect.objectContaining({
        authorization: 'Bearer ***',
        'content-type': 'application/json',
        host: new URL(berth.info.base_url).host,
      }),
      response_headers: {
        'content-type': 'application/json;charset=utf-8',
        'x-berth-version': berth.info.version,
        'x-request-id': String(answer.headers.get('x-request-id')),
      },
      faults: [],
      response_type: 'application/json;charset=utf-8',
      near_misses: [expect.objectContaining({ kind: 'query', at: 'x' })],
    })
  })

  test("says which of berth's own clients asked, so that they can be left out", async () => {
    const headers = (client: string) => ({ headers: { 'x-berth-client': client } })
    for (const client of ['cli', 'other']) await berth.fetch('/templates', headers(client))
    const clients = (await journal()).slice(-2).map(({ client }: { client: string | null }) => client)
    expect(clients).toEqual(['cli', null])
    const { requests: own } = (await berth.control('GET', '/requests?own=true')).body
    expect(own.map(({ client }: { client: string }) => client)).toEqual(['cli'])
    const { requests: others } = (await berth.control('GET', '/requests?own=false')).body
    expect(others.some(({ client }: { client: string | null }) => client !== null)).toBe(false)
  })

  test('lists refusals of every kind too', async () => {
    await fetch(`${berth.info.base_url}/servers`)
    await berth.call('GET', '/servers/srv_none')
    await berth.fetch('/servers', {
      method: 'POST',
      body: '{',
      headers: { 'content-type': 'application/json' },
    })
    await berth.call('GET', '/nowhere')
    await fetch(`${berth.info.base_url}/nowhere`, { headers: { authorization: 'Bearer sk_live_none' } })
    // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
    const shown = (await journal()).map(({ status, operation, account_id, response }: any) => [
      status,
      operation,
      account_id !== null,
      response.body.error,
    ])
    expect(shown).toEqual([
      [401, 'servers.list', false, 'missing_or_invalid_api_key'],
      [404, 'servers.get', true, 'not_found'],
      [400, 'servers.create', true, 'bad_request'],
      [404, null, true, 'not_found'],
      [404, null, false, 'not_found'],
    ])
  })

  test('of a stream or a long body keeps its beginning, and holds up neither', async () => {
    const headers = { accept: 'text/event-stream', 'content-type': 'application/json' }
    const body = JSON.stringify({ command: 'echo one; read x < /dev/null; sleep 1000' })
    const stream = await berth.fetch(`/servers/${server}/exec`, { method: 'POST', headers, body })
    for await (const { event } of readEvents(stream)) if (event === 'stdout') break
    const content = 'ä'.repeat(100_000)
    await berth.call('PUT', `/servers/${server}/files`, { path: 'long', content })
    expect((await berth.call('GET', `/servers/${server}/files?path=long`)).body.content).toBe(content)
    const [streamed, written, read] = await journal()
    expect(streamed).toMatchObject({ response: null, response_type: 'text/event-stream' })
    expect(written.request.truncated).toBe(true)
    expect(Buffer.byteLength(written.request.body)).toBeLessThanOrEqual(65_536 + 3)
    expect(written.request.body).toStartWith('{"path":"long","content":"äää')
    expect(read.response.truncated).toBe(true)
  })

  test('is listed without bodies if asked so, and shown with them by its id', async () => {
    const env = { TOKEN: 'correct-horse-battery' }
    await berth.call('POST', `/servers/${server}/exec`, { command: 'echo hi', env, enw: 1 })
    const [whole] = await journal()
    const { request, response, ...rest } = whole
    expect(request.body).toEqual({ command: 'echo hi', env: { TOKEN: '***' }, enw: 1 })
    expect(response.body.stdout).toBe('hi\n')
    expect(rest.near_misses).toHaveLength(1)
    expect(await journal('?bodies=false')).toEqual([rest])
    expect((await berth.control('GET', `/requests/${whole.id}`)).body).toEqual(whole)
    const followed = await fetch(
      `${berth.info.base_url}/_berth/requests?bodies=false&after=start&follow=true`,
      {
        headers: { authorization: `Bearer ${berth.info.admin_token}` },
      },
    )
    for await (const { data } of readEvents(followed)) {
      expect(data).toEqual(rest)
      break
    }
  })

  test('that the journal does not keep is not found', async () => {
    for (const id of ['req_none', 'errors2', '*']) {
      const { status, body } = await berth.control('GET', `/requests/${id}`)
      expect([status, body]).toEqual([
        404,
        { error: 'not_found', message: `The request "${id}" does not exist.` },
      ])
    }
  })

  test('lists neither the control API nor documents', async () => {
    await berth.control('GET', '/clock')
    await berth.fetch('/openapi.json')
    await berth.fetch('/docs')
    expect(await journal()).toEqual([])
  })
})

/** Sends a request as it stands, without what a client would fix in it. */
async function sendRaw(request: string): Promise<string> {
  const { hostname, port } = new URL(berth.info.base_url)
  let answer = ''
  const { promise, resolve } = Promise.withResolvers<void>()
  await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      open: (socket) => void socket.write(request),
      data(_, chunk) {
        answer += chunk.toString()
      },
      close: () => resolve(),
    },
  })
  await promise
  return answer
}

test('other requests are served while a long list is made', async () => {
  const body = JSON.stringify({ task: 'https://x/?a=b '.repeat(4_000) })
  const headers = { 'content-type': 'application/json' }
  const send = () => berth.fetch('/nowhere', { method: 'POST', headers, body })
  expect(new Set((await Promise.all(Array.from({ length: 200 }, send))).map(({ status }) => status))).toEqual(
    new Set([404]),
  )
  // What the first list loads is loaded.
  await journal('?limit=1')
  const order: string[] = []
  const note = (name: string) => () => void order.push(name)
  const listed = journal('?bodies=false').then(note('list'))
  // It is sent when the list has been asked for, and has much less to do.
  await berth.control('GET', '/clock').then(note('clock'))
  await listed
  expect(order).toEqual(['clock', 'list'])
})

describe('no request keeps the journal from being read', () => {
  test.each(['[', 'a b', 'x:99999', '%'])('be its Host header %j', async (host) => {
    const answer = await sendRaw(`GET /servers?x=1 HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
    expect(answer).toStartWith('HTTP/1.1 403')
    // With white space in it Bun gives no address at all, so that there is no telling what was meant.
    const known = host.includes(' ') ? [] : [{ path: '/servers?x=1', status: 403, operation: 'servers.list' }]
    expect(await journal('?path=/servers')).toMatchObject(known)
    expect(await journal()).toHaveLength(known.length)
  })

  test.each([
    ['[', ']'],
    ['{"a":', '}'],
  ])('be its body nested without end: %s', async (open, close) => {
    const body = open.repeat(9_000) + (open === '[' ? '' : '1') + close.repeat(9_000)
    const headers = { 'content-type': 'application/json' }
    await berth.fetch(`/servers/${server}/exec`, { method: 'POST', headers, body })
    expect(await last()).toMatchObject({ status: 400, request: { body: expect.stringContaining(open) } })
  })

  test('and none makes that slow, be its path or body ever so odd', async () => {
    const odd = [
      '/aa'.repeat(4_000),
      `${'/'.repeat(12_000)}x`,
      `/${'server'.repeat(2_000)}`,
      `/servers?${'q'.repeat(12_000)}=1`,
    ]
    for (const path of odd) for (let n = 0; n < 5; n += 1) await berth.fetch(path)
    for (const unit of ['a.', 'bearer ', '://', 'https://a'])
      await berth.exec(server, 'true', { stdin: unit.repeat(60_000 / unit.length) })
    const times: number[] = []
    for (let time = 0; time < 4; time += 1) {
      const began = performance.now()
      expect(await journal('?near_misses=true')).toHaveLength(20)
      expect(await journal()).toHaveLength(24)
      times.push(performance.now() - began)
    }
    // The quickest: on a busy machine berth waits for a processor now and then.
    expect(Math.min(...times)).toBeLessThan(1_500)
  })
})

test('HEAD is the operation of GET', async () => {
  await berth.fetch('/servers/srv_none', { method: 'HEAD' })
  expect(await last()).toMatchObject({ method: 'HEAD', operation: 'servers.get', near_misses: [] })
})

describe('headers', () => {
  const sent = async (headers: Record<string, string>, path = '/servers') => {
    await berth.fetch(path, { headers })
    return (await last()).request_headers
  }

  test('of credentials show the scheme and the names of cookies, and no more', async () => {
    const shown = await sent({
      authorization: `Basic ${btoa('me:hunter2hunter2')}`,
      'proxy-authorization': 'geheim-genug-proxy',
      cookie: 'berth_session=verysecret-session; theme=dark',
      'x-api-key': 'verysecret-key',
      'webhook-signature': 'v1,verysecret-signature',
      'x-berth-csrf': 'verysecret-csrf',
      'x-auth-token': 'verysecret-token',
      'idempotency-key': 'a-name-of-a-request',
      referer: 'http://localhost/a?token=verysecret-referer&page=2',
      'x-plain': `has ${berth.info.api_key} in it`,
    })
    expect(shown).toMatchObject({
      authorization: 'Basic ***',
      'proxy-authorization': '***',
      cookie: 'berth_session=***; theme=***',
      'x-api-key': '***',
      'webhook-signature': '***',
      'x-berth-csrf': '***',
      'x-auth-token': '***',
      'idempotency-key': 'a-name-of-a-request',
      referer: 'http://localhost/a?token=***&page=2',
      'x-plain': 'has sk_live_*** in it',
    })
  })

  test('of credentials are hidden in the rest of the exchange too', async () => {
    const body = { task: 'uses verysecret-opaque-key' }
    await berth.call('POST', '/servers', body, { 'x-api-key': 'verysecret-opaque-key' })
    expect((await last()).request.body).toEqual({ task: 'uses ***' })
  })

  test('of a variable of a server are hidden', async () => {
    await berth.call('PUT', '/secrets', { server_id: server, secrets: { TOKEN: 'header-horse-battery' } })
    expect(await sent({ 'x-note': 'header-horse-battery' })).toMatchObject({ 'x-note': '***' })
  })

  test('are bounded, each and all', async () => {
    const many = Object.fromEntries(Array.from({ length: 80 }, (_, at) => [`x-many-${at}`, 'x']))
    const shown = await sent({ ...many, 'a-long': 'y'.repeat(5_000) })
    expect(Object.keys(shown).length).toBe(64)
    expect(shown['a-long']).toBe(`${'y'.repeat(2_048)}…`)
  })

  test('are there for a refusal, a stream and a response of no JSON, also long after', async () => {
    await berth.call('GET', '/servers/srv_none')
    await fetch(`${berth.info.base_url}/servers`, { headers: { 'x-note': 'no key' } })
    const stream = await berth.fetch(`/servers/${server}/exec`, {
      method: 'POST',
      headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
      body: JSON.stringify({ command: 'echo hi' }),
    })
    await stream.text()
    // More than the time in which headers are still those of their message.
    await berth.call('POST', `/servers/${server}/exec`, { command: 'sleep 0.3' })
    Bun.gc(true)
    const entries = (await journal()).slice(-4)
    for (const { id, request_headers: request, response_headers: response } of entries) {
      expect(request['user-agent'] ?? request.host).toBeString()
      expect(response['x-request-id']).toBe(id)
    }
    expect(entries[1].request_headers['x-note']).toBe('no key')
    expect(entries[2].response_headers['content-type']).toBe('text/event-stream')
    expect(entries[2].request_headers.accept).toBe('text/event-stream')
  })
})

describe('faults', () => {
  const strike = async (effect: object): Promise<string> =>
    (await berth.control('POST', '/faults', { match: { operation: 'servers.list' }, effect })).body.id

  test('that applied are named with their effect, also when they are removed', async () => {
    const html = { respond: { status: 502, content_type: 'text/html', body: '<h1>502</h1>' } }
    const ids = [await strike({ delay_ms: 1 }), await strike(html)]
    await berth.fetch('/servers')
    await berth.control('DELETE', '/faults')
    const entry = await last()
    expect(entry).toMatchObject({
      id: expect.stringMatching(/^req_/),
      status: 502,
      faults: [
        { fault_id: ids[0], effect: { delay_ms: 1 } },
        { fault_id: ids[1], effect: html },
      ],
      response: { body: '<h1>502</h1>', truncated: false },
      response_headers: { 'content-type': 'text/html' },
    })
    expect(await journal(`?fault_id=${ids[0]}`)).toEqual([entry])
    expect(await journal('?fault_id=flt_none')).toEqual([])
  })

  test('that lose or cut off a response show what was really done', async () => {
    for (const effect of [{ lose_response: true }, { truncate: { bytes: 5 } }, { disconnect: true }]) {
      const id = await strike(effect)
      await expect(berth.call('GET', '/servers')).rejects.toThrow()
      await berth.control('DELETE', '/faults')
      const entry = await last()
      expect(entry.faults).toEqual([{ fault_id: id, effect }])
      expect(entry.id).toMatch(/^req_/)
      if ('disconnect' in effect) expect(entry.response).toBeNull()
      else expect([entry.status, entry.response.body.servers.length]).toEqual([200, expect.any(Number)])
    }
  })
})

describe('secrets', () => {
  test('of requests and answers come out nowhere', async () => {
    const secrets = ['hunter2hunter2', 'geheim-genug', 'user:pass-word', 'not-json-secret']
    await berth.call('PUT', '/secrets', { server_id: server, secrets: { TOKEN: secrets[0], more: null } })
    const key = (await berth.call('POST', '/keys', { label: 'new' })).body.key
    const { secret } = (await berth.call('POST', '/webhooks', { url: 'https://8.8.8.8/' })).body
    await berth.exec(server, 'echo $TOKEN; echo $TOKEN | base64')
    await berth.call('POST', `/servers/${server}/projects`, { env: { A: secrets[1] } })
    await berth.call('POST', `/servers/${server}/projects`, {
      source: { type: 'git', url: `https://${secrets[2]}@192.0.2.1/x.git` },
    })
    await berth.fetch('/secrets', {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: `{"secrets": {"A": "${secrets[3]}"`,
    })
    await berth.call('GET', `/servers?key=${key}&t=${berth.info.admin_token}`)
    await berth.call('POST', '/servers', { task: `Authorization: Bearer ${key} ${secret}` })
    const entries = await journal()
    const text = JSON.stringify(entries)
    for (const one of [...secrets, key, secret, berth.info.api_key, berth.info.admin_token])
      expect(text).not.toContain(one)
    expect(text).not.toContain(Buffer.from('hunter2hunter2').toString('base64').slice(0, 16))
    // What is no secret stays readable.
    expect(entries[0].request.body).toEqual({ server_id: server, secrets: { TOKEN: '***', more: null } })
    expect(entries[0].response.body.keys).toEqual(['TOKEN'])
    expect(entries[1].response.body).toMatchObject({ label: 'new', key: '***' })
  })
})

describe('a secret comes out nowhere', () => {
  const secret = 'correct-horse-battery'
  const post = (path: string, body: unknown) => berth.call('POST', path, body)
  const exec = (body: object) => post(`/servers/${server}/exec`, { command: 'true', ...body })
  const raw = (method: string, path: string, body: string) =>
    berth.fetch(path, { method, body, headers: { 'content-type': 'application/json' } })
  const put = (body: object) => berth.call('PUT', '/secrets', { server_id: server, ...body })
  const create = (source: object) => post(`/servers/${server}/projects`, { source })

  const WAYS: Record<string, () => Promise<unknown>> = {
    'among the variables of a command': () => exec({ env: { TOKEN: secret } }),
    'printed by the command that was given it': () =>
      exec({ env: { TOKEN: secret }, command: 'echo $TOKEN' }),
    'among variables, in a body that is cut': () =>
      exec({ env: { TOKEN: secret }, stdin: 'x'.repeat(70_000) }),
    'among variables, in a body that is no JSON': () =>
      raw('POST', `/servers/${server}/exec`, `{"command":"true","env":{"TOKEN":"${secret}"},}`),
    'in a field of another convention': () =>
      exec({ apiKey: secret, 'ACCESS-TOKEN': secret, clientSecret: secret }),
    'in a body that is no JSON, by its name': () => raw('POST', '/servers', `password=${secret}`),
    'in a list where an object belongs': () => put({ secrets: [secret] }),
    'in a field that nothing reads': () => put({ values: { TOKEN: secret } }),
    'beside the field that is read': () => raw('PUT', '/secrets', JSON.stringify({ TOKEN: secret })),
    'in a query': () => berth.call('GET', `/servers?apiKey=${secret}&x=${secret}`),
    'in the address of an archive': () =>
      create({ type: 'archive', url: `https://192.0.2.1/${secret}.zip?sig=${secret}` }),
    'in an address that is none': () => create({ type: 'git', url: `https://me:${secret}/x@192.0.2.1/a` }),
  }

  test.each(Object.entries(WAYS))('%s', async (_, send) => {
    await send()
    const entries = await journal()
    expect(entries).toHaveLength(1)
    expect(JSON.stringify(entries)).not.toContain(secret)
  })

  test('once printed, when its variable has another value or is gone', async () => {
    for (const value of [secret, 'another-horse', null]) {
      await berth.call('PUT', '/secrets', { server_id: server, secrets: { TOKEN: value } })
      await berth.exec(server, 'echo "is $TOKEN"')
    }
    const outputs = (await journal('?operation=exec.run')).map(
      (entry: { response: { body: { stdout: string } } }) => entry.response.body.stdout,
    )
    expect(outputs).toEqual(['is ***\n', 'is ***\n', 'is \n'])
  })

  test('where an answer is cut within it', async () => {
    await berth.call('PUT', '/secrets', { server_id: server, secrets: { TOKEN: secret } })
    const before = 65_536 - '{"stdout":"'.length - 10
    await berth.exec(server, `printf %${before}s x; printf %s $TOKEN; printf %9000s y`)
    const { body, truncated } = (await last()).response
    expect(truncated).toBe(true)
    expect(body.trimEnd()).toEndWith('x***')
    await berth.call('PUT', '/secrets', { server_id: server, secrets: { TOKEN: null } })
  })

  test('and a value that is not a secret stays readable', async () => {
    const env = { A: secret }
    await post(`/servers/${server}/projects`, {
      source: { type: 'git', url: 'x', ref: 'main' },
      env,
      name: 'Shop',
    })
    await raw('POST', `/servers/${server}/exec`, '{"command": "ls",}')
    const [created, malformed] = await journal()
    expect(created.request.body).toEqual({
      source: { type: 'git', url: '***', ref: 'main' },
      env: { A: '***' },
      name: 'Shop',
    })
    expect(malformed.request.body).toBe('{"command": "ls",}')
  })
})

describe('filters', () => {
  test('narrow by method, path, status, account and operation, newest first', async () => {
    const other = (await berth.control('POST', '/accounts')).body
    await berth.call('GET', '/servers')
    await berth.call('GET', '/servers', undefined, { authorization: `Bearer ${other.api_key}` })
    await berth.call('GET', '/servers/srv_none')
    await berth.call('DELETE', '/servers/srv_none')
    const paths = async (query: string) =>
      (await journal(query)).map(({ method, path }: Record<string, string>) => `${method} ${path}`)
    expect(await paths('?method=delete')).toEqual(['DELETE /servers/srv_none'])
    expect(await paths('?path=/servers')).toEqual(['GET /servers', 'GET /servers'])
    expect(await paths('?path=/servers/*')).toEqual(['GET /servers/srv_none', 'DELETE /servers/srv_none'])
    expect(await paths('?status=404')).toHaveLength(2)
    expect(await paths('?status=2xx')).toHaveLength(2)
    expect(await paths(`?account_id=${other.id}`)).toEqual(['GET /servers'])
    expect(await paths('?operation=servers.delete')).toEqual(['DELETE /servers/srv_none'])
    expect(await paths('?limit=1')).toEqual(['DELETE /servers/srv_none'])
    for (const query of ['?status=9', '?operation=nothing', '?after=req_none', '?limit=0', '?wrong=1'])
      expect((await berth.control('GET', `/requests${query}`)).status).toBe(400)
    await berth.control('DELETE', `/accounts/${other.id}`)
  })

  test('hold for a stream, which sends each request once', async () => {
    await berth.call('GET', '/servers')
    const stream = await fetch(`${berth.info.base_url}/_berth/requests?follow=true&status=404&limit=2`, {
      headers: { authorization: `Bearer ${berth.info.admin_token}` },
    })
    await berth.call('GET', '/servers/srv_1')
    await berth.call('GET', '/servers')
    await berth.call('GET', '/servers/srv_2')
    const paths: string[] = []
    for await (const { event, data } of readEvents(stream)) {
      expect(event).toBe('request')
      paths.push(data.path)
    }
    expect(paths).toEqual(['/servers/srv_1', '/servers/srv_2'])
  })
})

describe('near misses', () => {
  const missesOf = async (method: string, path: string, body?: unknown) => {
    await berth.call(method, path, body)
    return (await last()).near_misses.map(({ kind, at, suggestions }: Record<string, unknown>) => ({
      kind,
      at,
      suggestions,
    }))
  }

  test('are fields that nothing read, with those that may have been meant', async () => {
    expect(
      await missesOf('POST', '/keys', { label: 'x', allowedServerIds: [server], wholly: 'else' }),
    ).toEqual([
      { kind: 'field', at: 'allowedServerIds', suggestions: ['allowed_server_ids'] },
      { kind: 'field', at: 'wholly', suggestions: [] },
    ])
    expect(
      await missesOf('POST', `/servers/${server}/exec`, { command: 'true', env: { ANY: 'thing' } }),
    ).toEqual([])
    expect(await missesOf('GET', `/servers/${server}/files?pth=x`)).toEqual([
      { kind: 'query', at: 'pth', suggestions: ['path'] },
    ])
  })

  test('name what is known where nothing similar is', async () => {
    const messages = async (...request: Parameters<typeof missesOf>) => {
      await missesOf(...request)
      return (await last()).near_misses.map(({ message }: { message: string }) => message)
    }
    expect(await messages('POST', `/servers/${server}/tasks`, { goal: '', nmae: 'y' })).toEqual([
      'Nothing read this field. Known: goal.',
    ])
    expect(await messages('GET', '/usage?wholly=1')).toEqual([
      'Nothing read this parameter of the query. Known: days.',
    ])
  })

  test('are paths and methods that lead nowhere, with those that nearly matched', async () => {
    expect(await missesOf('GET', '/server')).toEqual([
      { kind: 'path', at: '/server', suggestions: ['GET /servers', 'POST /servers'] },
    ])
    expect((await missesOf('POST', '/v1/servers'))[0].suggestions[0]).toBe('POST /servers')
    expect((await missesOf('POST', `/servers/${server}/execute`, {}))[0].suggestions[0]).toBe(
      'POST /servers/{serverId}/exec',
    )
    expect((await missesOf('GET', '/something-else'))[0].suggestions).toEqual([])
    expect((await missesOf('POST', '/projects'))[0]).toMatchObject({
      kind: 'method',
      suggestions: ['POST /servers/{serverId}/projects', 'GET /projects'],
    })
    expect((await missesOf('PUT', '/servers'))[0]).toMatchObject({
      kind: 'method',
      suggestions: ['GET /servers', 'POST /servers'],
    })
  })

  test('are ids of another kind', async () => {
    expect(await missesOf('GET', '/servers/prj_01')).toEqual([
      { kind: 'id', at: 'serverId', suggestions: [] },
    ])
    expect(await missesOf('GET', '/servers/srv_01')).toEqual([])
  })

  test('can be asked for alone', async () => {
    await berth.call('GET', '/servers')
    await berth.call('GET', '/serverz')
    expect((await journal('?near_misses=true')).map(({ path }: { path: string }) => path)).toEqual([
      '/serverz',
    ])
  })
})

test('so many are kept as were asked for, the latest; none with 0', async () => {
  await using few = await testBerth({ flags: { 'journal-size': '3' } })
  for (const n of [1, 2, 3, 4, 5]) await few.call('GET', `/servers/srv_${n}`)
  const { requests } = (await few.control('GET', '/requests')).body
  expect(requests.map(({ path }: { path: string }) => path)).toEqual([
    '/servers/srv_5',
    '/servers/srv_4',
    '/servers/srv_3',
  ])
  await using none = await testBerth({ flags: { 'journal-size': '0' } })
  await none.call('GET', '/servers')
  expect((await none.control('GET', '/requests')).body.requests).toEqual([])
})

test('an answer is kept as it was given, also where it is written later or was a failure', async () => {
  const [one, none, nowhere, long] = [
    await berth.call('GET', `/servers/${server}`),
    await berth.call('GET', '/servers/srv_none'),
    await berth.call('GET', '/nowhere'),
    await berth.call('POST', `/servers/${server}/exec`, { command: 'printf %20000s x' }),
  ]
  await berth.call('PATCH', `/servers/${server}`, { task: 'changed meanwhile' })
  const shown = (await journal()).map(({ response }: { response: { body: unknown } }) => response.body)
  expect(shown.slice(0, 4)).toEqual([one.body, none.body, nowhere.body, long.body])
  expect(nowhere.body.error).toBe('not_found')
  for (const { headers } of [none, nowhere, long])
    expect(headers.get('content-type')).toBe(one.headers.get('content-type'))
  await berth.call('PATCH', `/servers/${server}`, { task: '' })
})

test('many long bodies take no more memory than the journal may', async () => {
  const content = 'x'.repeat(60_000)
  for (let n = 0; n < 700; n += 1) await berth.call('PUT', `/servers/${server}/files`, { path: 'f', content })
  const { requests } = (await berth.control('GET', '/requests?limit=1000')).body
  expect(requests.length).toBeLessThan(560)
  expect(requests.length).toBeGreaterThan(200)
})

test('what a response says in short is there without bodies too', async () => {
  const last = async () => (await berth.control('GET', '/requests?bodies=false&limit=1')).body.requests[0]
  await berth.call('GET', '/servers/srv_nope')
  expect(await last()).toMatchObject({
    said: { error: 'not_found', message: expect.stringContaining('srv_nope'), server_id: null, made: [] },
  })
  const id = await berth.server()
  expect((await last()).said).toEqual({ error: null, message: null, server_id: null, made: [id] })
  const { body: task } = await berth.call('POST', `/servers/${id}/tasks`, { goal: 'run: true' })
  expect((await last()).said.made).toEqual([task.task_id])
  expect(await last()).not.toHaveProperty('response')
})
