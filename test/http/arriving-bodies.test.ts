import { afterAll, beforeAll, expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { until } from '../support/processes.ts'

const MIB = 2 ** 20

let berth: TestBerth
let path: string
beforeAll(async () => {
  berth = await testBerth()
  path = `/servers/${await berth.server()}/files`
})
afterAll(() => berth?.[Symbol.asyncDispose]())

/** Sends the head of a request whose body does not come, or a first part of a body in chunks. */
function begin(key: string, target: string, framing: string, part = ''): Socket {
  const { hostname, port } = new URL(berth.info.base_url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  const method = target === '/mcp' ? 'POST' : 'PUT'
  const head = [`${method} ${target} HTTP/1.1`, `host: ${hostname}:${port}`, `authorization: Bearer ${key}`]
  socket.write(`${[...head, 'content-type: application/json', framing].join('\r\n')}\r\n\r\n${part}`)
  return socket
}

/** The status of a small request with a body. */
const statusWith = async (key: string): Promise<number> => {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ path: 'a', content: 'a' })
  return (await fetch(`${berth.info.base_url}${path}`, { method: 'PUT', headers, body })).status
}

const newKey = async (): Promise<string> => (await berth.call('POST', '/keys', { label: 'other' })).body.key

const KNOWN = `content-length: ${32 * MIB}`
const CHUNKS = 'transfer-encoding: chunked'
const CHUNK = `${(32 * MIB - 1).toString(16)}\r\n${' '.repeat(32 * MIB - 1)}`

test.each([
  ['of a known length', KNOWN, ''],
  ['in chunks', CHUNKS, CHUNK],
])('bodies %s that do not arrive are bounded for each key', async (_, framing, part) => {
  const key = await newKey()
  // One of them for the MCP endpoint, which reads its bodies itself.
  const sockets = Array.from({ length: 7 }, (_, at) => begin(key, at === 0 ? '/mcp' : path, KNOWN))
  try {
    for (let turn = 0; turn < 5; turn += 1) expect(await statusWith(key)).toBe(201)
    sockets.push(begin(key, path, framing, part))
    await until(async () => (await statusWith(key)) === 503, 'eight bodies are all that one key may have')
    expect(await statusWith(berth.info.api_key)).toBe(201)
    sockets[0]?.destroy()
    await until(async () => (await statusWith(key)) === 201, 'the end of one makes room')
  } finally {
    for (const socket of sockets) socket.destroy()
  }
})

test('a body that falls silent ends with its connection, and one that comes slowly is awaited', async () => {
  const key = await newKey()
  const large = JSON.stringify({ path: 'slow', content: 'a'.repeat(2 ** 17) })
  const small = JSON.stringify({ path: 'slow', content: 'a' })
  const declared = (body: string): string => `content-length: ${body.length}`
  const silent = [
    ...[begin(key, path, declared(small)), begin(key, path, declared(large), large.slice(0, 100))],
    ...[begin(key, path, CHUNKS, '1\r\n \r\n'), begin(key, '/mcp', declared(large))],
  ]
  const slow = begin(key, path, `${declared(large)}\r\nconnection: close`)
  const response = new Response(Readable.toWeb(slow) as ReadableStream<Uint8Array>).text()
  let sent = 0
  const send = (length: number): void => {
    slow.write(large.slice(sent, sent + length))
    sent += length
  }
  const steps = setInterval(() => send(10), 2_000)
  try {
    await Promise.all(silent.map((socket) => once(socket, 'close')))
    expect(slow.readyState).toBe('open')
    send(large.length)
    expect(await response).toStartWith('HTTP/1.1 201')
  } finally {
    clearInterval(steps)
    for (const socket of [...silent, slow]) socket.destroy()
  }
})
