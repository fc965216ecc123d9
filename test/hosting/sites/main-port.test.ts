import { describe, expect, test } from 'bun:test'
import { dialLoopback } from '../../../src/compute/local/dial.ts'
import type { Dialer } from '../../../src/compute/sandbox.ts'
import { slugOf } from '../../../src/hosting/sites/main-port/slug-hosts.ts'
import type { ServeFiles } from '../../../src/hosting/sites/upstream.ts'
import type { Listener } from '../../../src/http/listener.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/processes.ts'
import { app, appOn, mainPort, Raw, rawApp, SERVER } from './support.ts'

const MB = 1024 * 1024

test.each([
  ['http://demo.localhost/', 'demo'],
  ['http://demo.localhost:4747/path', 'demo'],
  ['http://Demo-2.LOCALHOST.:4747/', 'demo-2'],
  ['http://localhost:4747/demo.localhost/', null],
  ['http://127.0.0.1:4747/', null],
  ['http://[::1]:4747/', null],
  ['http://a.demo.localhost/', null],
  ['http://demo.localhost.example/', null],
])('%s names the slug %j', (url, slug) => expect(slugOf(url)).toBe(slug))

describe('a request for SLUG.localhost', () => {
  test('is answered by the site, any other by the API as before', async () => {
    await using backend = app(
      (request) => new Response(`${request.method} ${new URL(request.url).pathname}`, { status: 201 }),
    )
    await using main = await mainPort(backend.upstream)
    const response = await main.fetch('/path?query', { method: 'PATCH' })
    expect([response.status, await response.text()]).toEqual([201, 'PATCH /path'])
    for (const host of ['localhost', 'other.localhost', `127.0.0.1:${main.listener.port}`, 'evil.example']) {
      expect(await (await main.fetch('/', { headers: { host } })).text()).toBe(`API ${host}`)
    }
    await main.site.site.close()
    expect(await (await main.fetch('/')).text()).toStartWith('API')
  })

  test('reaches the app as by the port of its own', async () => {
    await using backend = await rawApp()
    await using main = await mainPort(backend.upstream)
    const sent = main.fetch('/a%20b?x=%2F', {
      method: 'POST',
      body: 'body',
      headers: { 'x-forwarded-for': '6.6.6.6', cookie: 'a=b', 'user-agent': 'test', accept: 'x/y' },
    })
    const upstream = await backend.connection()
    const text = await upstream.until('body')
    expect(text).toStartWith('POST /a%20b?x=%2F HTTP/1.1\r\n')
    expect(text).toContain('\r\nX-Forwarded-For: 127.0.0.1\r\n')
    expect(text).toContain(`\r\nX-Forwarded-Host: ${main.host}\r\n`)
    expect(text.toLowerCase()).toContain(`\r\nhost: ${main.host}\r\n`)
    expect(text).toContain('\r\ncookie: a=b\r\n')
    expect(text).not.toContain('6.6.6.6')
    upstream.send(
      'HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nraw',
    )
    const response = await sent
    expect(response.status).toBe(302)
    expect(response.headers.get('location')).toBe('/elsewhere')
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(response.headers.get('content-length')).toBe('3')
    expect(await response.text()).toBe('raw')
    await upstream.end()
  })

  test('gets no header that neither side has sent, but Date, and keeps those that both have', async () => {
    await using backend = await rawApp()
    await using main = await mainPort(backend.upstream)
    using client = await Raw.to(main.listener.port)
    const namesOf = (head: string) =>
      [...head.matchAll(/^([\w-]+): /gm)].map(([, name]) => name?.toLowerCase()).toSorted()
    client.send(`POST / HTTP/1.1\r\nHost: ${main.host}\r\nX-A: 1\r\nContent-Length: 4\r\n\r\nbody`)
    const upstream = await backend.connection()
    expect(namesOf(await upstream.until('body'))).toEqual([
      'content-length',
      'host',
      'x-a',
      'x-forwarded-for',
      'x-forwarded-host',
      'x-forwarded-proto',
    ])
    upstream.send('HTTP/1.1 200 OK\r\nX-B: 2\r\nContent-Length: 2\r\n\r\nok')
    expect(namesOf(await client.until('ok'))).toEqual(['content-length', 'date', 'x-b'])
  })

  test.each(['HEAD', 'GET'])('has no body where the answer has none: %s', async (method) => {
    await using backend = app(
      () =>
        new Response(null, {
          status: method === 'HEAD' ? 200 : 304,
          headers: { etag: '"a"', 'content-length': '5' },
        }),
    )
    await using main = await mainPort(backend.upstream)
    const response = await main.fetch('/', { method })
    expect([response.headers.get('etag'), await response.text()]).toEqual(['"a"', ''])
  })

  test('carries 100 MB both ways, with and without a length', async () => {
    await using backend = app(async (request) => {
      let size = 0
      for await (const chunk of request.body ?? []) size += chunk.length
      let left = size / MB
      return new Response(
        new ReadableStream({
          async pull(controller) {
            if (left-- > 0) controller.enqueue(new Uint8Array(MB))
            else controller.close()
            await Bun.sleep(0)
          },
        }),
      )
    })
    await using main = await mainPort(backend.upstream)
    for (const sized of [true, false]) {
      let left = 100
      const body = new ReadableStream({
        pull(controller) {
          if (left-- > 0) controller.enqueue(new Uint8Array(MB))
          else controller.close()
        },
      })
      const headers = sized ? { 'content-length': String(100 * MB) } : {}
      const response = await main.fetch('/', { method: 'PUT', body, headers })
      let size = 0
      for await (const chunk of response.body ?? []) size += chunk.length
      expect(size).toBe(100 * MB)
    }
  })

  test('holds the app back where the client does not read', async () => {
    await using backend = await rawApp()
    await using main = await mainPort(backend.upstream)
    using client = await Raw.to(main.listener.port)
    client.send(`GET / HTTP/1.1\r\nHost: ${main.host}\r\n\r\n`)
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    client.socket.pause()
    upstream.send(`HTTP/1.1 200 OK\r\nContent-Length: ${100 * MB}\r\n\r\n`)
    const piece = Buffer.alloc(MB)
    let sent = 0
    for (let quiet = 0; quiet < 30 && sent < 100; quiet++) {
      if (upstream.socket.writableLength === 0) {
        upstream.socket.write(piece)
        sent += 1
        quiet = 0
      }
      await Bun.sleep(10)
    }
    // The kernel's buffers of two connections hold some of it: up to 41 MB were seen.
    expect(sent).toBeLessThan(70)
    client.socket.resume()
    await until(() => client.received.length > sent * MB - MB, 'the rest comes', 20_000)
  })

  test('streams events as they come, and tells the app when the client has gone', async () => {
    await using backend = await rawApp()
    await using main = await mainPort(backend.upstream)
    {
      using client = await Raw.to(main.listener.port)
      client.send(`GET / HTTP/1.1\r\nHost: ${main.host}\r\n\r\n`)
      const upstream = await backend.connection()
      await upstream.until('\r\n\r\n')
      upstream.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n')
      await client.until('data: 1\n\n')
      upstream.send('data: 2\n\n')
      await client.until('data: 2\n\n')
      expect(main.site.uses.open).toBe(1)
    }
    await (await backend.connection()).end()
    await until(() => main.site.uses.open === 0, 'it is over')
  })

  test('before its answer: the app learns that the client has gone, too', async () => {
    await using backend = await rawApp()
    await using main = await mainPort(backend.upstream)
    {
      using client = await Raw.to(main.listener.port)
      client.send(`GET / HTTP/1.1\r\nHost: ${main.host}\r\n\r\n`)
      await (await backend.connection()).until('\r\n\r\n')
    }
    await (await backend.connection()).end()
    await until(() => main.site.uses.open === 0, 'it is over')
  })

  test('waits for an app that starts, and receives a page when that takes too long', async () => {
    await using main = await mainPort()
    const waiting = main.fetch('/')
    await until(() => main.site.uses.open === 1, 'it waits')
    await using backend = app(() => new Response('here'))
    main.site.site.setUpstream(backend.upstream)
    expect(await (await waiting).text()).toBe('here')
    await using impatient = await mainPort({ kind: 'starting' }, { waitMs: 100 })
    expect((await impatient.fetch('/')).status).toBe(503)
  })

  test('is a failure where the app fails amid its answer', async () => {
    await using backend = await rawApp()
    await using main = await mainPort(backend.upstream)
    const sent = main.fetch('/')
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    upstream.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
    const response = await sent
    upstream.socket.resetAndDestroy()
    await expect(response.text()).rejects.toThrow()
  })

  test('is a failure where the app ends between two chunks of its answer, also by a plain end', async () => {
    await using backend = await rawApp()
    await using main = await mainPort(backend.upstream)
    const sent = main.fetch('/')
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    upstream.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n')
    const response = await sent
    upstream.socket.end()
    await expect(response.text()).rejects.toThrow()
  })

  test('loses what means its connection alone, on both ways, and keeps what an app must not be told', async () => {
    await using backend = await rawApp()
    await using main = await mainPort(backend.upstream)
    using client = await Raw.to(main.listener.port)
    client.send(
      [
        `GET /a HTTP/1.1\r\nHost: ${main.host}\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Kept: 2\r\nTE: trailers`,
        'Keep-Alive: timeout=5\r\nX_Forwarded_For: 6.6.6.6\r\nCookie: berth_session_4747=secret; a=b\r\n\r\n',
      ].join('\r\n'),
    )
    const upstream = await backend.connection()
    const text = (await upstream.until('\r\n\r\n')).toLowerCase()
    expect(text).toContain('\r\nx-kept: 2\r\n')
    expect(text).toContain('\r\ncookie: a=b\r\n')
    for (const gone of ['x-hop', 'keep-alive', '6.6.6.6', 'secret']) expect(text).not.toContain(gone)
    upstream.send(
      [
        'HTTP/1.1 200 OK\r\nConnection: X-Mine\r\nX-Mine: 1\r\nX-Yours: 2\r\nTransfer-Encoding: chunked',
        'Set-Cookie: berth_session_4747=other\r\nSet-Cookie: a=c\r\n\r\n4\r\nwhol\r\n1\r\ne\r\n0\r\nX-Sum: 1\r\n\r\n',
      ].join('\r\n'),
    )
    const response = (await client.until('e')).toLowerCase()
    expect(response).toContain('\r\nx-yours: 2\r\n')
    expect(response).toContain('\r\nset-cookie: a=c\r\n')
    for (const gone of ['x-mine', 'berth_session']) expect(response).not.toContain(gone)
  })

  test.each([
    ['a value that is no text', 'X-Odd: a\x01b'],
    ['a length spelt with "_"', 'Content_Length: 3'],
  ])('is refused for %s before the app sees it', async (_, lines) => {
    await using backend = await rawApp()
    await using main = await mainPort(backend.upstream)
    using client = await Raw.to(main.listener.port)
    client.send(`GET / HTTP/1.1\r\nHost: ${main.host}\r\n${lines}\r\n\r\n`)
    expect(await client.until('\r\n\r\n')).toStartWith('HTTP/1.1 400')
    expect(backend.connections).toHaveLength(0)
  })

  test('gets the response of an app that does not read the body', async () => {
    await using backend = await rawApp()
    await using main = await mainPort(backend.upstream)
    const body = new ReadableStream({
      async pull(controller) {
        controller.enqueue(new Uint8Array(MB))
        await Bun.sleep(1)
      },
    })
    const sent = main.fetch('/', { method: 'POST', body })
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    upstream.send('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig')
    upstream.socket.end()
    const response = await sent
    expect([response.status, await response.text()]).toEqual([413, 'big'])
    await until(() => main.site.uses.open === 0, 'it is over')
  })

  test('gets files: whole, without their body, and as the client reads', async () => {
    const piece = new Uint8Array(MB)
    const streams = { read: 0, cancelled: 0 }
    const stream = (pieces: number) =>
      new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            streams.read += 1
            if (streams.read > pieces) controller.close()
            else controller.enqueue(piece)
          },
          cancel: () => {
            streams.cancelled += 1
          },
        },
        { highWaterMark: 0 },
      )
    const serve: ServeFiles = async ({ method, target, header }) => {
      if (target === '/broken') throw new Error('unreadable')
      const headers = { etag: '"e"', 'content-length': String(100 * MB) }
      if (target === '/large') return { status: 200, headers, body: stream(100) }
      const text = `${method} ${target} ${header('x-test')}`
      return { status: 206, headers: { 'content-type': 'text/x' }, body: new TextEncoder().encode(text) }
    }
    await using main = await mainPort({ kind: 'files', serve })
    const small = await main.fetch('/a%20b?c', { headers: { 'x-test': 'yes' } })
    expect([small.status, small.headers.get('content-type'), await small.text()]).toEqual([
      206,
      'text/x',
      'GET /a%20b?c yes',
    ])
    const head = await main.fetch('/large', { method: 'HEAD' })
    expect([head.headers.get('content-length'), await head.text()]).toEqual([String(100 * MB), ''])
    expect((await main.fetch('/broken')).status).toBe(500)

    streams.read = 0
    const whole = await main.fetch('/large')
    expect((await whole.arrayBuffer()).byteLength).toBe(100 * MB)
    streams.read = 0
    streams.cancelled = 0
    {
      using client = await Raw.to(main.listener.port)
      client.send(`GET /large HTTP/1.1\r\nHost: ${main.host}\r\n\r\n`)
      await client.until('\r\n\r\n')
      client.socket.pause()
      expect(main.site.uses.open).toBe(1)
      let before = -1
      await until(() => {
        const still = streams.read === before
        before = streams.read
        return still
      }, 'no more is read')
      expect(streams.read).toBeLessThan(60)
    }
    await until(() => streams.cancelled === 1 && main.site.uses.open === 0, 'the file is closed')
  })

  test('is cut off where the site closes, in a response and before it', async () => {
    await using backend = await rawApp()
    await using main = await mainPort(backend.upstream)
    const begun = main.fetch('/begun')
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    upstream.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
    const half = await begun
    const waiting = main.fetch('/waiting')
    await (await backend.connection(1)).until('\r\n\r\n')
    await main.site.site.close()
    await expect(half.text()).rejects.toThrow()
    expect((await waiting).status).toBe(503)
    expect(main.site.uses.open).toBe(0)
  })

  test('is a failure where the app responds with something that is not a response', async () => {
    await using backend = await rawApp((app) => {
      app.socket.on('data', (head) => {
        const status = /^GET \/(\d+)/.exec(String(head))?.[1]
        app.send(`HTTP/1.1 ${status} Odd\r\nUpgrade: x\r\nContent-Length: 1\r\n\r\nx`)
      })
    })
    await using main = await mainPort(backend.upstream)
    for (const status of [101, 777]) {
      const response = await main.fetch(`/${status}`)
      expect(response.status).toBe(502)
      expect(await response.json()).toMatchObject({ error: 'compute_backend_error' })
    }
    expect((await main.fetch('/205')).status).toBe(205)
  })
})

describe('a WebSocket for SLUG.localhost', () => {
  const closed: string[] = []
  const echo = () =>
    app(
      (request, server) => {
        if (request.url.endsWith('/no'))
          return new Response('denied', { status: 401, headers: { 'x-why': 'no' } })
        const headers = { 'sec-websocket-protocol': 'second' }
        return server.upgrade(request, { headers, data: request.headers.get('x-forwarded-for') } as never)
          ? undefined
          : new Response('none', { status: 426 })
      },
      {
        websocket: {
          open: (socket: Bun.ServerWebSocket<string>) => void socket.send(`hello ${socket.data}`),
          message(socket: Bun.ServerWebSocket, message: string | Buffer) {
            if (message === 'close') socket.close(4321, 'as you wish')
            else socket.send(message)
          },
          close: (_socket: Bun.ServerWebSocket, code: number, reason: string) =>
            void closed.push(`${code} ${reason}`),
        },
      },
    )

  function connect(main: { host: string; listener: Listener }, path = '/path') {
    const socket = new WebSocket(`ws://127.0.0.1:${main.listener.port}${path}`, {
      headers: { host: main.host, 'x-forwarded-for': '6.6.6.6' },
      protocols: ['first', 'second'],
    })
    socket.binaryType = 'arraybuffer'
    const messages: (string | ArrayBuffer)[] = []
    socket.onmessage = ({ data }) => messages.push(data)
    const opened = new Promise((resolve) => {
      socket.onopen = resolve
    })
    const ended = new Promise<CloseEvent>((resolve) => {
      socket.onclose = resolve
    })
    return { socket, messages, opened, ended }
  }

  test('carries text, binary and how it was closed, both ways', async () => {
    await using backend = echo()
    await using main = await mainPort()
    const { socket, messages, opened, ended } = connect(main)
    await Bun.sleep(20)
    main.site.site.setUpstream(backend.upstream)
    await opened
    expect(socket.protocol).toBe('second')
    await until(() => messages.length === 1, 'the app says hello')
    expect(messages[0]).toBe('hello 127.0.0.1')
    const binary = crypto.getRandomValues(new Uint8Array(60_000))
    const large = 'ü'.repeat(2 * MB)
    socket.send('text')
    socket.send(binary)
    socket.send(large)
    await until(() => messages.length === 4, 'all come back')
    expect(messages[1]).toBe('text')
    expect(new Uint8Array(messages[2] as ArrayBuffer)).toEqual(binary)
    expect(messages[3]).toBe(large)
    expect(main.site.uses.open).toBe(1)
    socket.send('close')
    const { code, reason } = await ended
    expect([code, reason]).toEqual([4321, 'as you wish'])
    await until(() => main.site.uses.open === 0, 'it is over')

    for (const [given, told] of [
      [4000, '4000 enough'],
      [undefined, '1005 '],
    ] as const) {
      const other = connect(main)
      await other.opened
      closed.length = 0
      if (given === undefined) other.socket.close()
      else other.socket.close(given, 'enough')
      await until(() => closed.length === 1, 'the app learns it')
      expect(closed).toEqual([told])
    }
    let drained = false
    const last = connect(main)
    await last.opened
    main.site.site.setUpstream({ kind: 'starting' })
    void main.site.site.drained({ server: SERVER, port: backend.port }).then(() => {
      drained = true
    })
    await Bun.sleep(10)
    expect(drained).toBe(false)
    last.socket.close()
    await until(() => drained, 'nothing is under way there')
  })

  test('and a request reach the port of their server, never the same number of another or this machine', async () => {
    await using backend = echo()
    await using stranger = app(() => new Response('stranger'))
    const server: Dialer = { dial: (_, host, handlers) => dialLoopback(backend.port, host, handlers) }
    const port = stranger.port
    await using main = await mainPort({ kind: 'app', server, port })
    const { socket, messages, opened, ended } = connect(main)
    await opened
    await until(() => messages[0] === 'hello 127.0.0.1', 'the app says hello')
    expect((await main.fetch('/no')).status).toBe(401)
    expect((await fetch(`${main.site.site.url}no`)).status).toBe(401)
    main.site.site.setUpstream({ kind: 'app', server: SERVER, port })
    expect(await (await main.fetch('/')).text()).toBe('stranger')
    let isDrained = false
    const drained = main.site.site.drained({ server, port }).then(() => {
      isDrained = true
    })
    await main.site.site.drained({ server: SERVER, port })
    expect(isDrained).toBe(false)
    socket.close()
    await Promise.all([ended, drained])
  })

  test('is cut off where the app or the site goes away', async () => {
    await using main = await mainPort()
    {
      await using backend = echo()
      main.site.site.setUpstream(backend.upstream)
      const { opened, ended } = connect(main)
      await opened
      await backend[Symbol.asyncDispose]()
      await ended
    }
    await using backend = echo()
    main.site.site.setUpstream(backend.upstream)
    const { opened, ended } = connect(main)
    await opened
    await main.site.site.close()
    expect((await ended).code).toBe(1006)
  })

  test('that the app refuses is answered as the app does', async () => {
    await using backend = echo()
    await using main = await mainPort(backend.upstream)
    using client = await Raw.to(main.listener.port)
    const handshake = (path: string) =>
      `GET ${path} HTTP/1.1\r\nHost: ${main.host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`
    client.send(handshake('/no'))
    const answer = await client.until('denied')
    expect(answer).toStartWith('HTTP/1.1 401 ')
    expect(answer).toContain('x-why: no')
    main.site.site.setUpstream({ kind: 'down', reason: 'asleep' })
    client.send(handshake('/'))
    expect(await client.until('asleep')).toStartWith('HTTP/1.1 503 ')
    main.site.site.setUpstream(appOn(freePort()))
    await until(() => main.site.uses.open === 0, 'it is over')
  })

  test('reaches the app as the client asks for it, and is sent once', async () => {
    await using backend = await rawApp()
    await using main = await mainPort(backend.upstream)
    using client = await Raw.to(main.listener.port)
    client.send(
      `GET /a?b HTTP/1.1\r\nHost: ${main.host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: a, b\r\nSec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    )
    const upstream = await backend.connection()
    const head = (await upstream.until('\r\n\r\n')).toLowerCase()
    expect(head).toStartWith('get /a?b http/1.1\r\n')
    for (const line of ['connection: upgrade', 'upgrade: websocket', 'sec-websocket-protocol: a, b']) {
      expect(head).toContain(`\r\n${line}\r\n`)
    }
    // Bun does not compress what it passes on.
    expect(head).not.toContain('deflate')
    upstream.send('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno')
    expect(await client.until('no')).toStartWith('HTTP/1.1 403 ')
    expect(backend.connections).toHaveLength(1)
  })
})
