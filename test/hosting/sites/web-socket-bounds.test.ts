import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { until } from '../../support/processes.ts'
import { app, mainPort, Raw, rawApp } from './support.ts'

const MIB = 1024 * 1024

/** Opens a WebSocket at the main port. */
function connect(main: Awaited<ReturnType<typeof mainPort>>) {
  const socket = new WebSocket(`ws://127.0.0.1:${main.listener.port}/`, { headers: { host: main.host } })
  const opened = new Promise((resolve) => {
    socket.onopen = resolve
  })
  const ended = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.onclose = resolve
  })
  return { socket, opened, ended }
}

const handshake = (host: string): string =>
  `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`

/** Completes the handshake of a WebSocket by hand (RFC 6455, section 4.2.2). */
async function accept(raw: Raw): Promise<void> {
  const head = await raw.until('\r\n\r\n')
  const key = /^sec-websocket-key: *(\S+)/im.exec(head)?.[1]
  const digest = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  raw.send(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${digest}\r\n\r\n`,
  )
}

/** An app that accepts WebSockets and then reads nothing. */
const deafApp = () => rawApp((raw) => void accept(raw).then(() => raw.socket.pause()))

test('a message of more than 16 MiB from either side closes a WebSocket of SLUG.localhost with 1009', async () => {
  await using backend = app(
    (_, server) => (server.upgrade(_) ? undefined : new Response(null, { status: 426 })),
    {
      websocket: {
        maxPayloadLength: 64 * MIB,
        message: (socket: Bun.ServerWebSocket, size: string) =>
          void socket.send(new Uint8Array(Number(size) || 1)),
      },
    },
  )
  await using main = await mainPort(backend.upstream)
  {
    const { socket, opened, ended } = connect(main)
    await opened
    const answer = new Promise<number>((resolve) => {
      socket.onmessage = ({ data }) => resolve(data.length)
    })
    socket.binaryType = 'nodebuffer'
    socket.send(`${16 * MIB}`)
    expect(await answer).toBe(16 * MIB)
    socket.send(`${16 * MIB + 1}`)
    expect(await ended).toMatchObject({ code: 1009, reason: 'a message of the app is larger than 16 MiB' })
  }
  const { socket, opened, ended } = connect(main)
  await opened
  socket.send(new Uint8Array(16 * MIB + 1))
  expect((await ended).code).toBe(1009)
})

test('a message that the app only begins is given up by the length that it announces, or once its frames are larger than 16 MiB', async () => {
  const many = Buffer.concat([
    Buffer.from([0x02, 126, 0x10, 0]),
    Buffer.alloc(4096),
    ...Array.from({ length: 4096 }, () => [Buffer.from([0x00, 126, 0x10, 0]), Buffer.alloc(4096)]).flat(),
  ])
  for (const frames of [Buffer.from([0x82, 127, 0, 0, 0, 0, 0x07, 0, 0, 0]), many]) {
    await using backend = await rawApp((raw) => void accept(raw))
    await using main = await mainPort(backend.upstream)
    const { opened, ended } = connect(main)
    await opened
    const { socket } = await backend.connection()
    socket.write(frames)
    expect(await ended).toMatchObject({ code: 1009, reason: 'a message of the app is larger than 16 MiB' })
  }
})

test('control frames between and within messages count for none', async () => {
  const ping = Buffer.concat([Buffer.from([0x89, 125]), Buffer.alloc(125)])
  const pings = Buffer.concat(Array.from({ length: 160_000 }, () => ping))
  await using backend = await rawApp((raw) => {
    void accept(raw).then(() => {
      raw.socket.write(Buffer.from([0x01, 1, 0x61]))
      raw.socket.write(pings)
      raw.socket.write(Buffer.from([0x80, 1, 0x62]))
    })
  })
  await using main = await mainPort(backend.upstream)
  const { socket, opened } = connect(main)
  const message = new Promise((resolve) => {
    socket.onmessage = ({ data }) => resolve(data)
  })
  await opened
  expect(await message).toBe('ab')
  socket.terminate()
  for (const one of backend.connections) one.socket.destroy()
})

test('what waits for an app that does not read is bounded, for a WebSocket and for all of the app', async () => {
  await using backend = await deafApp()
  await using main = await mainPort(backend.upstream)
  const alone = connect(main)
  await alone.opened
  for (let n = 0; n < 90; n += 1) alone.socket.send(new Uint8Array(MIB))
  expect(await alone.ended).toMatchObject({ code: 1009, reason: 'the app does not read' })

  const many = Array.from({ length: 10 }, () => connect(main))
  let closed = 0
  for (const { ended } of many) void ended.then(() => (closed += 1))
  await Promise.all(many.map(({ opened }) => opened))
  for (let n = 0; n < 25; n += 1) for (const { socket } of many) socket.send(new Uint8Array(MIB))
  // None of them has 64 MiB to send.
  await until(() => closed > 0, 'some are closed')
  expect(closed).toBeLessThan(10)
  for (const { socket } of many) socket.terminate()
  for (const { socket } of backend.connections) socket.destroy()
})

test('an app waits for a client that does not read', async () => {
  let sent = 0
  await using backend = await rawApp((raw) => {
    void accept(raw).then(() => {
      const message = Buffer.concat([Buffer.from([0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 0]), Buffer.alloc(MIB)])
      const send = () => {
        while (sent < 200) {
          sent += 1
          if (!raw.socket.write(message)) return
        }
      }
      raw.socket.on('drain', send)
      send()
    })
  })
  await using main = await mainPort(backend.upstream)
  using client = await Raw.to(main.listener.port)
  let received = 0
  client.socket.removeAllListeners('data').pause()
  client.send(handshake(main.host))
  await backend.connection()
  let before = -1
  await until(() => {
    const isStill = sent > 0 && sent === before
    before = sent
    return isStill
  }, 'no more is sent')
  expect(sent).toBeLessThan(60)
  client.socket.on('data', (bytes) => {
    received += bytes.length
  })
  client.socket.resume()
  await until(() => received > 200 * MIB, 'all comes')
})

test('an app has a hundred WebSockets there at a time', async () => {
  const ended = Promise.withResolvers<void>()
  await using backend = app((_, server) => (server.upgrade(_) ? undefined : new Response(null)), {
    websocket: { message() {}, close: () => ended.resolve() },
  })
  await using main = await mainPort(backend.upstream)
  const many = Array.from({ length: 100 }, () => connect(main))
  await Promise.all(many.map(({ opened }) => opened))
  using refused = await Raw.to(main.listener.port)
  refused.send(handshake(main.host))
  const response = await refused.until('at a time')
  expect(response).toStartWith('HTTP/1.1 503 ')
  expect(response).toContain('at most 100 WebSockets')
  many[0]?.socket.terminate()
  await ended.promise
  const further = connect(main)
  await further.opened
  for (const { socket } of [...many, further]) socket.terminate()
})
