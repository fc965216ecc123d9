import { describe, expect, test } from 'bun:test'
import { until } from '../../support/processes.ts'
import { app, get, Raw, rawWay, testSite } from './support.ts'

const MB = 1024 * 1024
const SIZE = 100 * MB

describe('server-sent events', () => {
  test('come one by one, at once, and the app learns that the client has gone', async () => {
    let gone = false
    let send: (text: string) => void = () => {}
    await using backend = app(
      () =>
        new Response(
          new ReadableStream({
            start(controller) {
              send = (text) => controller.enqueue(Buffer.from(text))
              send('data: 1\n\n')
            },
            cancel() {
              gone = true
            },
          }),
          { headers: { 'content-type': 'text/event-stream' } },
        ),
    )
    await using site = await testSite(backend)
    {
      using client = await Raw.to(site.port)
      client.send(get('/'))
      await client.until('data: 1\n\n')
      expect(site.uses.open).toBe(1)
      send('data: 2\n\n')
      await client.until('data: 2\n\n')
    }
    await until(() => gone, 'the app learns it')
    await until(() => site.uses.open === 0, 'nothing is under way')
  })
})

describe('a body of 100 MB', () => {
  const piece = new Uint8Array(MB).map((_, index) => index * 7)

  test('goes to the app', async () => {
    let [size, sum] = [0, 0]
    await using backend = app(async (request) => {
      for await (const chunk of request.body ?? []) {
        size += chunk.length
        sum = (sum + (chunk[chunk.length - 1] ?? 0)) % 65_536
      }
      return new Response('ok')
    })
    await using site = await testSite(backend)
    for (const length of [{}, { 'content-length': String(SIZE) }]) {
      size = 0
      let left = SIZE / MB
      const body = new ReadableStream({
        pull(controller) {
          if (left-- > 0) controller.enqueue(piece)
          else controller.close()
        },
      })
      const response = await fetch(site.site.url, { method: 'PUT', body, headers: length })
      expect(await response.text()).toBe('ok')
      expect(size).toBe(SIZE)
    }
  })

  test('comes from the app', async () => {
    await using backend = app(
      () =>
        new Response(
          new ReadableStream({
            async pull(controller) {
              for (let left = SIZE / MB; left > 0; left--) {
                controller.enqueue(piece)
                await Bun.sleep(0)
              }
              controller.close()
            },
          }),
        ),
    )
    await using site = await testSite(backend)
    const hash = new Bun.CryptoHasher('sha256')
    const expected = new Bun.CryptoHasher('sha256')
    for (let left = SIZE / MB; left > 0; left--) expected.update(piece)
    for await (const chunk of (await fetch(site.site.url)).body ?? []) hash.update(chunk)
    expect(hash.digest('hex')).toBe(expected.digest('hex'))
  })
})

describe('nothing is heaped up in between', () => {
  /** Bytes that a sender gets rid of while nobody reads at the other end. */
  async function accepted(sender: Raw): Promise<number> {
    const piece = Buffer.alloc(MB)
    let [sent, last] = [0, -1]
    while (sent !== last && sent < SIZE) {
      last = sent
      if (sender.socket.writableLength === 0) {
        sender.socket.write(piece)
        sent += piece.length
      }
      // As long as it takes the kernel to move what it will move.
      for (let turn = 0; turn < 20 && sender.socket.writableLength > 0; turn++) await Bun.sleep(10)
    }
    return sent - sender.socket.writableLength
  }

  test('where the client does not read', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send(get('/'))
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    client.socket.pause()
    upstream.send(`HTTP/1.1 200 OK\r\nContent-Length: ${SIZE}\r\n\r\n`)
    const taken = await accepted(upstream)
    expect(taken).toBeLessThan(32 * MB)
    // And it goes on as soon as the client reads.
    client.socket.resume()
    await until(() => client.received.length > taken, 'the rest comes', 20_000)
  })

  test('where the app does not read', async () => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${SIZE}\r\n\r\n`)
    const upstream = await backend.connection()
    upstream.socket.pause()
    const taken = await accepted(client)
    expect(taken).toBeLessThan(32 * MB)
    upstream.socket.resume()
    await until(() => upstream.received.length > taken, 'the rest comes', 20_000)
  })
})

describe('a WebSocket', () => {
  const echo = () =>
    app(
      (request, server) =>
        server.upgrade(request, { headers: { 'set-cookie': 'a=1' } })
          ? undefined
          : new Response('none', { status: 426 }),
      {
        websocket: {
          message(socket: Bun.ServerWebSocket, message: string | Buffer) {
            if (message === 'close') socket.close(4321, 'as you wish')
            else socket.send(message)
          },
          close(_socket: Bun.ServerWebSocket, code: number, reason: string) {
            closed.push(`${code} ${reason}`)
          },
        },
      },
    )
  const closed: string[] = []

  test('carries text, binary of any size, and how it was closed, both ways', async () => {
    await using backend = echo()
    await using site = await testSite(backend)
    const socket = new WebSocket(`ws://127.0.0.1:${site.port}/path`)
    socket.binaryType = 'arraybuffer'
    const messages: (string | ArrayBuffer)[] = []
    socket.onmessage = ({ data }) => messages.push(data)
    await new Promise((resolve) => {
      socket.onopen = resolve
    })
    expect(site.uses.open).toBe(1)
    const binary = crypto.getRandomValues(new Uint8Array(60_000))
    const large = 'ü'.repeat(2 * MB)
    socket.send('text')
    socket.send(binary)
    socket.send(large)
    await until(() => messages.length === 3, 'all come back')
    expect(messages[0]).toBe('text')
    expect(new Uint8Array(messages[1] as ArrayBuffer)).toEqual(binary)
    expect(messages[2]).toBe(large)
    const end = new Promise<CloseEvent>((resolve) => {
      socket.onclose = resolve
    })
    socket.send('close')
    const { code, reason } = await end
    expect([code, reason]).toEqual([4321, 'as you wish'])
    await until(() => site.uses.open === 0, 'it is over')

    const second = new WebSocket(`ws://127.0.0.1:${site.port}/path`)
    await new Promise((resolve) => {
      second.onopen = resolve
    })
    closed.length = 0
    second.close(4000, 'enough')
    await until(() => closed.length === 1, 'the app learns it')
    expect(closed).toEqual(['4000 enough'])
  })

  test('outlives a switch; frames that come with the handshake are not lost', async () => {
    await using way = await rawWay()
    const { backend, site, client } = way
    client.send(`${get('/', 'Connection: keep-alive, Upgrade', 'Upgrade: websocket')}early`)
    const upstream = await backend.connection()
    const head = await upstream.until('\r\n\r\n')
    expect(head).toContain('\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n')
    upstream.send(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nA: b\r\n\r\nhello',
    )
    expect(await client.until('hello')).toBe(
      'HTTP/1.1 101 Switching Protocols\r\nA: b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello',
    )
    await upstream.until('early')
    site.site.setUpstream({ kind: 'down', reason: 'gone' })
    client.send('more')
    await upstream.until('more')
    client.socket.end()
    await upstream.end()
  })

  test('that the app refuses is an answer like any other', async () => {
    await using backend = app(() => new Response('no', { status: 426 }))
    await using site = await testSite(backend)
    using client = await Raw.to(site.port)
    for (let round = 0; round < 2; round++) {
      client.send(get('/', 'Connection: Upgrade', 'Upgrade: websocket'))
      expect(await client.until('no')).toStartWith('HTTP/1.1 426 ')
    }
  })
})
