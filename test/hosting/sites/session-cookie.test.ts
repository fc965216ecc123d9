import { describe, expect, test } from 'bun:test'
import { SlugHosts } from '../../../src/hosting/sites/main-port/slug-hosts.ts'
import { Listener } from '../../../src/http/listener.ts'
import { setsSession, withoutSession } from '../../../src/http/session-cookie.ts'
import { app, get, rawWay, testSite } from './support.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

test.each([
  ['a=b', 'a=b'],
  ['berth_session_4747=s3cret', null],
  ['a=b; berth_session_4747=s3cret', 'a=b'],
  ['berth_session_4747=s3cret; a=b', 'a=b'],
  ['a=1; berth_session_4747=s3cret; berth_session_80=s3cret; b=2', 'a=1; b=2'],
  ['a=1;berth_session_1=s3cret ;b="x y"; c', 'a=1;b="x y"; c'],
  ['  berth_session_1 =s3cret', null],
  // Names of others, which only look alike.
  ['x_berth_session_1=v; berth_session_1x=v; berth_session_=v; Berth_Session_1=v', undefined],
  ['a=berth_session_1', undefined],
])('of the cookies %j an app gets %j', (sent, kept) =>
  expect(withoutSession(sent)).toBe(kept === undefined ? sent : kept),
)

test.each([
  ['berth_session_4747=x; Path=/', true],
  ['berth_session_4747=; Max-Age=0', true],
  ['berth_session_4747 = x', true],
  // Browsers send a cookie without a name as its value alone.
  ['=berth_session_4747=x', true],
  ['= berth_session_4747=x', true],
  ['a=berth_session_4747', false],
  ['berth_session_4747x=y', false],
  ['my_berth_session_4747=y', false],
])('an answer with "Set-Cookie: %s" sets a session: %j', (line, is) => expect(setsSession(line)).toBe(is))

describe('the port of a project', () => {
  test('passes all cookies on but the session of berth itself, byte for byte', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    const lines = ['X-A: 1', 'Cookie: a="\xe9, b";berth_session_4747=s3cret; b=2;  c', 'X-B: 2']
    client.send(get('/', ...lines, 'cookie: berth_session_1=s3cret', 'X-C: 3'))
    const upstream = await backend.connection()
    const head = await upstream.until('\r\n\r\n')
    expect(head).toContain('\r\nX-A: 1\r\nCookie: a="\xe9, b"; b=2;  c\r\nX-B: 2\r\nX-C: 3\r\n')
    expect(head).not.toContain('s3cret')
    upstream.send(OK)
    await client.until('ok')
    // A second request on the same connection, where a field means that connection alone.
    client.send(get('/', 'Connection: cookie', 'Cookie: berth_session_4747=s3cret; a=b'))
    expect(await upstream.until('\r\n\r\n')).not.toMatch(/cookie/i)
    upstream.send(OK)
    await client.until('ok')
  })

  test('lets no answer set or end that session; other cookies and an untouched answer stay as they are', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send(get('/'))
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    upstream.send(
      'HTTP/1.1 200 OK\r\nset-cookie:  a=berth_session_1; Path=/\r\nSet-Cookie: berth_session_4747=evil; Path=/\r\nX: 1\r\nSet-Cookie: =berth_session_1=evil\r\nContent-Length: 2\r\n\r\nok',
    )
    expect(await client.until('ok')).toBe(
      'HTTP/1.1 200 OK\r\nset-cookie:  a=berth_session_1; Path=/\r\nX: 1\r\nContent-Length: 2\r\n\r\nok',
    )
    client.send(get('/'))
    await upstream.until('\r\n\r\n')
    const untouched = 'HTTP/1.1 200 OK\r\nSet-Cookie:\t a=b\r\nContent-Length: 2\r\n\r\nok'
    upstream.send(untouched)
    expect(await client.until('ok')).toBe(untouched)
  })

  test('keeps it from WebSockets, in both directions', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send(
      get('/', 'Connection: Upgrade', 'Upgrade: websocket', 'Cookie: a=b; berth_session_4747=s3cret'),
    )
    const upstream = await backend.connection()
    const head = await upstream.until('\r\n\r\n')
    expect(head).toContain('\r\nCookie: a=b\r\n')
    expect(head).not.toContain('s3cret')
    upstream.send(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSet-Cookie: berth_session_1=evil\r\n\r\n',
    )
    const answer = await client.until('\r\n\r\n')
    expect(answer).toStartWith('HTTP/1.1 101 ')
    expect(answer).not.toContain('evil')
  })

  test('takes no cookie behind a body, where it would pass unseen', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send('POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    client.send('0\r\nCookie: berth_session_4747=s3cret\r\n\r\n')
    expect(await client.end()).toStartWith('HTTP/1.1 400 ')
    for (const { received } of backend.connections) expect(received).not.toContain('s3cret')
  })
})

describe('SLUG.localhost on the main port', () => {
  test('keeps the session from the app, and the app from the session', async () => {
    await using backend = app(
      (request) =>
        new Response(request.headers.get('cookie'), {
          headers: [
            ['set-cookie', 'berth_session_4747=evil'],
            ['set-cookie', 'a=b'],
          ],
        }),
    )
    await using site = await testSite({ ...backend, slug: 'demo' })
    const listener = new Listener('127.0.0.1', 0)
    listener.open(() => new Response('API'))
    listener.route(new SlugHosts(site.gateway))
    try {
      const response = await fetch(`http://127.0.0.1:${listener.port}/`, {
        headers: { host: 'demo.localhost', cookie: 'a=1; berth_session_4747=s3cret; b=2' },
      })
      expect(await response.text()).toBe('a=1; b=2')
      expect(response.headers.getSetCookie()).toEqual(['a=b'])
    } finally {
      await listener.close()
    }
  })

  test('keeps it from a WebSocket of the app', async () => {
    const { promise: seen, resolve } = Promise.withResolvers<string | null>()
    await using backend = app(
      (request, server) => {
        resolve(request.headers.get('cookie'))
        return server.upgrade(request) ? undefined : new Response(null, { status: 400 })
      },
      { websocket: { message() {} } },
    )
    await using site = await testSite({ ...backend, slug: 'demo' })
    const listener = new Listener('127.0.0.1', 0)
    listener.open(() => new Response('API'))
    listener.route(new SlugHosts(site.gateway))
    try {
      const socket = new WebSocket(`ws://127.0.0.1:${listener.port}/`, {
        headers: { host: 'demo.localhost', cookie: 'berth_session_4747=s3cret; a=1' },
      })
      await new Promise((opened) => socket.addEventListener('open', opened))
      expect(await seen).toBe('a=1')
      const closed = new Promise((done) => socket.addEventListener('close', done))
      socket.close()
      await closed
    } finally {
      await listener.close()
    }
  })
})
