import { expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import { beginBody } from '../support/begun-body.ts'
import { berthForTests } from '../support/berth.ts'
import { until } from '../support/processes.ts'

const MIB = 2 ** 20

const berth = await berthForTests()
const path = `/servers/${await berth.server()}/files`

const begin = (key: string, target: string, framing: string, part = ''): Socket =>
  beginBody(berth, key, target, framing, part)

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
