import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { beginBody } from '../support/begun-body.ts'
import { testBerth } from '../support/berth.ts'

const SILENCE_MS = 1_500

test('a body that falls silent ends with its connection, and one that comes slowly is awaited', async () => {
  await using berth = await testBerth({ dependencies: { bodySilenceMs: SILENCE_MS } })
  const path = `/servers/${await berth.server()}/files`
  const large = JSON.stringify({ path: 'slow', content: 'a'.repeat(2 ** 17) })
  const small = JSON.stringify({ path: 'slow', content: 'a' })
  const declared = (body: string): string => `content-length: ${body.length}`
  const begin = (target: string, framing: string, part?: string) =>
    beginBody(berth, berth.info.api_key, target, framing, part)
  const begun = performance.now()
  const silent = [
    ...[begin(path, declared(small)), begin(path, declared(large), large.slice(0, 100))],
    ...[begin(path, 'transfer-encoding: chunked', '1\r\n \r\n'), begin('/mcp', declared(large))],
  ]
  const slow = begin(path, `${declared(large)}\r\nconnection: close`)
  const response = new Response(Readable.toWeb(slow) as ReadableStream<Uint8Array>).text()
  let sent = 0
  const send = (length: number): void => {
    slow.write(large.slice(sent, sent + length))
    sent += length
  }
  // This process is berth too, so that its timers are late only together with those here.
  const steps = setInterval(() => send(10), SILENCE_MS / 15)
  try {
    await Promise.all(silent.map((socket) => once(socket, 'close')))
    expect(performance.now() - begun).toBeGreaterThan(SILENCE_MS)
    expect(slow.readyState).toBe('open')
    send(large.length)
    expect(await response).toStartWith('HTTP/1.1 201')
  } finally {
    clearInterval(steps)
    for (const socket of [...silent, slow]) socket.destroy()
  }
})
