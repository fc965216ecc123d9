import { describe, expect, test } from 'bun:test'
import { until } from '../../support/processes.ts'
import { app, appOn, get, Raw, rawApp, rawWay, testSite } from './support.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** The content of a body in chunks. */
const contentOf = (chunks: string): string => chunks.replaceAll(/[\da-f]+\r\n(.*?)\r\n/g, '$1')

describe('a request reaches the app', () => {
  test('as it was sent, but for what means the connection and what a proxy tells', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send(
      get(
        '/a/../b%2e%2e//c?x=%00&y=\xe9',
        'X-Odd:  spaced\tout \t',
        'x-odd: twice',
        'Connection: keep-alive, X-Private',
        'X-Private: 1',
        'Keep-Alive: timeout=5',
        'Proxy-Connection: keep-alive',
        'TE: trailers, deflate',
        'Upgrade: h2c',
        'HTTP2-Settings: AAMAAABk',
        'X-Forwarded-For: 6.6.6.6',
        'X-Forwarded-Host: evil.example',
        'x-forwarded-proto: https',
        'X_Forwarded_For: 6.6.6.6',
        'X-Forwarded-Port: 443',
        'X-Real-IP: 6.6.6.6',
        'Forwarded: for=6.6.6.6',
        'Cookie: a=b',
      ),
    )
    const upstream = await backend.connection()
    expect(await upstream.until('\r\n\r\n')).toBe(
      [
        'GET /a/../b%2e%2e//c?x=%00&y=\xe9 HTTP/1.1',
        'Host: localhost',
        'X-Odd:  spaced\tout \t',
        'x-odd: twice',
        'Cookie: a=b',
        'X-Forwarded-For: 127.0.0.1',
        'X-Forwarded-Proto: http',
        'X-Forwarded-Host: localhost',
        '',
        '',
      ].join('\r\n'),
    )
    upstream.send(OK)
    expect(await client.until('ok')).toBe(OK)
  })

  test('from HTTP/1.0 too, without a Host, and the answer ends with the connection', async () => {
    await using way = await rawWay()
    const { backend, site, client } = way
    client.send('GET / HTTP/1.0\r\n\r\n')
    const upstream = await backend.connection()
    expect(await upstream.until('\r\n\r\n')).toContain(`HTTP/1.1\r\nHost: 127.0.0.1:${site.port}\r\n`)
    upstream.send(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: 1\r\n\r\n3\r\nabc\r\n4;e=f\r\ndefg\r\n',
    )
    upstream.send('0\r\nT: 1\r\n\r\n')
    expect(await client.end()).toBe('HTTP/1.1 200 OK\r\nX: 1\r\nConnection: close\r\n\r\nabcdefg')
  })

  test('with a head of 32 KiB, and so does its answer', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    const padded = (head: string) => head.replace('X: ', `X: ${'a'.repeat(32 * 1024 - head.length)}`)
    const request = padded(get('/', 'X: '))
    for (const part of [request.slice(0, 20_000), request.slice(20_000)]) client.send(part)
    const upstream = await backend.connection()
    expect(await upstream.until('\r\n\r\n')).toStartWith(request.slice(0, -2))
    const answer = padded('HTTP/1.1 204 No Content\r\nX: \r\n\r\n')
    upstream.send(answer)
    expect(await client.until('\r\n\r\n')).toBe(answer)
  })

  test('in the absolute form of its own host, and of no other', async () => {
    await using backend = app((request) => new Response(new URL(request.url).pathname))
    await using site = await testSite(backend)
    using client = await Raw.to(site.port)
    client.send('GET http://LOCALHOST/path HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect(await client.until('/path')).toStartWith('HTTP/1.1 200 ')
    client.send('GET http://other.localhost/path HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect(await client.end()).toStartWith('HTTP/1.1 400 ')
  })

  test('with its body in chunks, however they come, but without extensions and trailers', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send('POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    for (const octet of '3\r\nabc\r\nA;ext="v"\r\n0123456789\r\n0\r\nX-Sum: 42\r\n\r\n') client.send(octet)
    const chunks = await upstream.until('0\r\n\r\n')
    expect(contentOf(chunks)).toBe('abc0123456789')
    expect(chunks).not.toMatch(/ext|X-Sum/)
    upstream.send(OK)
    await client.until('ok')
  })

  test.each(['evil.example', 'evil.example:80', '127.0.0.1.evil.example', '192.168.0.1', ''])(
    'not for the Host %j: a name that was rebound to this machine gets 403',
    async (host) => {
      await using way = await rawWay()
      const { backend, client } = way
      client.send(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      expect(await client.end()).toStartWith('HTTP/1.1 403 Forbidden\r\n')
      expect(backend.connections).toEqual([])
    },
  )

  // A page there could set cookies for berth's own pages at the name.
  test.each(['dashboard.localhost', 'berth.localhost:80', 'X.Dashboard.LOCALHOST.', 'a.b.berth.localhost'])(
    'not for a name of berth’s own: %s gets 403',
    async (host) => {
      await using way = await rawWay()
      const { backend, client } = way
      client.send(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      expect(await client.end()).toStartWith('HTTP/1.1 403 Forbidden\r\n')
      expect(backend.connections).toEqual([])
    },
  )
})

describe('an answer reaches the client', () => {
  test('in chunks, without trailers', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send(get('/'))
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
    upstream.send(`${head}3\r\nabc\r\n2;e=f\r\nde\r\n0\r\nX-Sum: 42\r\n\r\n`)
    const answer = await client.until('0\r\n\r\n')
    expect(answer).toStartWith(head)
    expect(contentOf(answer.slice(head.length))).toBe('abcde')
  })

  test.each([
    ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'],
    ['HEAD', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: "a"\r\n\r\n'],
    ['GET', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
    ['DELETE', 'HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n'],
  ])('without a body: %s %j, and the connection goes on', async (method, answer) => {
    await using way = await rawWay()
    const { backend, client } = way
    for (let round = 0; round < 2; round++) {
      client.send(`${method} / HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      await until(() => backend.connections.some((one) => one.received.endsWith('\r\n\r\n')), 'it comes')
      const upstream = backend.connections.find((one) => one.received !== '') as Raw
      upstream.received = ''
      upstream.send(answer)
      expect(await client.until('\r\n\r\n')).toBe(answer)
    }
  })

  test('without a length, to the end of the connection', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send(get('/'))
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    upstream.send('HTTP/1.0 200 Fine\r\nServer: old\r\n\r\nfirst')
    expect(await client.until('first')).toBe(
      'HTTP/1.1 200 Fine\r\nServer: old\r\nConnection: close\r\n\r\nfirst',
    )
    upstream.send(' last')
    upstream.socket.end()
    expect(await client.end()).toBe(' last')
    expect(client.failed).toBe(false)
  })

  test('after 100 Continue, to a client that waits for it, and without other interim responses', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send('POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n')
    const upstream = await backend.connection()
    expect(await upstream.until('\r\n\r\n')).toContain('Expect: 100-continue\r\n')
    upstream.send('HTTP/1.1 100 Continue\r\nX: 1\r\n\r\n')
    expect(await client.until('\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    client.send('body')
    await upstream.until('body')
    upstream.send('HTTP/1.1 100 Continue\r\n\r\n'.repeat(10_000))
    upstream.send(`${'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(10_000)}${OK}`)
    expect(await client.until('ok')).toBe(OK)
  })

  test('before the request is whole: the rest of that still goes to the app, and no other follows', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\nhalf')
    const upstream = await backend.connection()
    await upstream.until('half')
    upstream.send(OK)
    expect(await client.until('ok')).toBe(OK.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
    client.send(`rest${get('/next')}`)
    expect(await upstream.until('rest')).toBe('rest')
    await client.end()
    expect(backend.connections).toHaveLength(1)
  })

  test('and the connection ends where the client or the app wants it', async () => {
    await using backend = app(
      (request) => new Response('ok', { headers: request.url.endsWith('/x') ? { connection: 'close' } : {} }),
    )
    await using site = await testSite(backend)
    using first = await Raw.to(site.port)
    first.send(get('/', 'Connection: close'))
    expect(await first.end()).toMatch(/\r\nConnection: close\r\n[\s\S]*ok$/)
    using second = await Raw.to(site.port)
    second.send(get('/x'))
    await second.until('ok')
    second.send(get('/'))
    expect(await second.until('ok')).toStartWith('HTTP/1.1 200')
  })

  test('in order, to a client that sends requests ahead', async () => {
    await using backend = app((request) => new Response(`<${new URL(request.url).pathname}>`))
    await using site = await testSite(backend)
    using client = await Raw.to(site.port)
    const paths = Array.from({ length: 200 }, (_, index) => `/${index}`)
    client.send(paths.map((path) => get(path)).join(''))
    const text = await client.until('</199>')
    expect([...text.matchAll(/<(.*?)>/g)].map((match) => match[1] ?? '')).toEqual(paths)
  })

  test.each([
    ['two lengths', 'Content-Length: 2\r\nContent-Length: 3\r\n\r\nok'],
    ['a length and chunks', 'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok'],
    ['a folded line', 'A: b\r\n c\r\n\r\n'],
    ['chunks that are none', 'Transfer-Encoding: chunked\r\n\r\nok'],
    ['another encoding', 'Transfer-Encoding: gzip\r\n\r\nok'],
    ['a length spelt with an underscore', 'Content_Length: 2\r\n\r\nok'],
    ['an encoding spelt with an underscore', 'Transfer_Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ])('never with %s: 502', async (_name, rest) => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send(get('/'))
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    upstream.send(`HTTP/1.1 200 OK\r\n${rest}`)
    expect(await client.until('}')).toMatch(
      /^HTTP\/1.1 502 Bad Gateway\r\n[\s\S]*"error":"compute_backend_error"/,
    )
    await upstream.end()
  })

  test.each([
    ['in lines that end with LF alone', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok', 'without its CR'],
    ['of SSH', 'SSH-2.0-OpenSSH_9.9\r\n', 'does not speak HTTP/1.1'],
    ['of TLS', '\x15\x03\x01\x00\x02\x02\x46', 'does not speak HTTP/1.1'],
    ['of HTTP/2', '\0\0\x12\x04\0\0\0\0\0', 'does not speak HTTP/1.1'],
    ['with a NUL', 'HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n', 'malformed'],
    ['that switches unasked', 'HTTP/1.1 101 Go\r\nUpgrade: websocket\r\n\r\n', 'without being asked'],
  ])('never %s: 502 at once, though the app leaves the connection open', async (_name, answer, reason) => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send(get('/'))
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    upstream.send(answer)
    const response = await client.until('}')
    expect(response).toStartWith('HTTP/1.1 502 Bad Gateway\r\n')
    expect(response).toContain(reason)
    await upstream.end()
  })

  test('in the smallest parts', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send(get('/'))
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    for (const octet of OK) {
      upstream.send(octet)
      await Bun.sleep(1)
    }
    expect(await client.until('ok')).toBe(OK)
  })

  test.each([
    ['204', 'GET', 'HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n'],
    ['304', 'GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n'],
    ['of HEAD', 'HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n'],
    ['with a length of 0', 'GET', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
  ])(
    'without the body that one must not have (%s), which reaches nobody else',
    async (_name, method, head) => {
      await using way = await rawWay()
      const { backend, client } = way
      client.send(`${method} / HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      const upstream = await backend.connection()
      await upstream.until('\r\n\r\n')
      upstream.send(`${head}abc`)
      expect(await client.until('\r\n\r\n')).toBe(head)
      await upstream.end()
      client.send(get('/'))
      const next = await backend.connection(1)
      await next.until('\r\n\r\n')
      next.send(OK)
      expect(await client.until('ok')).toBe(OK)
    },
  )

  test('of an app that refuses a large body and closes: the client that still sends gets it', async () => {
    const refusal = 'HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge'
    await using backend = await rawApp((upstream) =>
      upstream.socket.once('data', () => {
        upstream.socket.pause()
        // Unread bytes make the close a reset.
        upstream.socket.end(refusal, () => setTimeout(() => upstream.socket.destroy(), 20))
      }),
    )
    await using site = await testSite(backend)
    using client = await Raw.to(site.port)
    client.send('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000000\r\n\r\n')
    client.socket.write(Buffer.alloc(50_000_000))
    expect(await client.until('large')).toStartWith('HTTP/1.1 413 ')
  })

  test('to requests with bodies that are sent ahead, each with its own', async () => {
    await using backend = app(async (request) => new Response(`<${await request.text()}>`))
    await using site = await testSite(backend)
    using client = await Raw.to(site.port)
    const post = (body: string) =>
      `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    client.send(`${post('a')}${post('bc')}${get('/')}${post('def')}`)
    const text = await client.until('<def>')
    expect([...text.matchAll(/<(.*?)>/g)].map((match) => match[1] ?? '')).toEqual(['a', 'bc', '', 'def'])
  })

  test('as 502 where the app closes the connection without any', async () => {
    await using backend = await rawApp((upstream) =>
      upstream.socket.once('data', () => upstream.socket.end()),
    )
    await using site = await testSite(backend)
    using client = await Raw.to(site.port)
    client.send(get('/'))
    expect(await client.until('}')).toStartWith('HTTP/1.1 502 ')
    expect(backend.connections).toHaveLength(1)
  })
})

describe('who goes away', () => {
  test('the client: the app learns it, before and amid the answer', async () => {
    await using backend = await rawApp()
    await using site = await testSite(backend)
    {
      using client = await Raw.to(site.port)
      client.send(get('/'))
      await (await backend.connection()).until('\r\n\r\n')
    }
    await (await backend.connection()).end()
    {
      using client = await Raw.to(site.port)
      client.send('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf')
      const upstream = await backend.connection(1)
      await upstream.until('half')
      upstream.send('HTTP/1.1 200 OK\r\n\r\nendless')
      await client.until('endless')
    }
    await (await backend.connection(1)).end()
    await until(() => site.uses.open === 0, 'nothing is under way')
    expect(site.uses.begun).toBe(2)
  })

  test.each([
    ['its length is told', 'Content-Length: 10\r\n\r\nhalf', false],
    ['it comes in chunks', 'Transfer-Encoding: chunked\r\n\r\n8\r\nhalf', false],
    ['its end would be the end of the connection', '\r\nhalf', true],
  ])('the app, by a failure amid an answer: the client sees it where %s', async (_name, rest, reset) => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send(get('/'))
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    upstream.send(`HTTP/1.1 200 OK\r\n${rest}`)
    await client.until('half')
    upstream.socket.resetAndDestroy()
    await client.end()
    if (reset) expect(client.failed).toBe(true)
  })
})

test('an app that chose ::1 for "localhost" is reached there', async () => {
  const server = Bun.serve({ hostname: '::1', port: 0, fetch: () => new Response('by six') })
  try {
    await using site = await testSite({ upstream: appOn(server.port ?? 0, '::1') })
    expect(await (await fetch(`http://127.0.0.1:${site.port}/`)).text()).toBe('by six')
  } finally {
    await server.stop(true)
  }
})
