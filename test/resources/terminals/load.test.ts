import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { thorough } from '../../support/thorough.ts'
import { TestViewer } from '../../support/viewer.ts'

// Tens of megabytes pass through a pseudo-terminal, on a busy machine.
setDefaultTimeout(60_000)

let berth: TestBerth
let server: string
/** A viewer that answers no ping, from before the other tests on: it waits for two minutes. */
let silent: { path: string; viewer: Awaited<ReturnType<typeof slowViewer>> } | null = null
beforeAll(async () => {
  berth = await testBerth()
  server = await berth.server({ tier: 'medium' })
  if (!thorough) return
  const path = await opened({ command: 'cat' })
  const viewer = await slowViewer(path)
  viewer.socket.resume()
  silent = { path, viewer }
})
afterAll(() => berth[Symbol.asyncDispose]())

async function opened(request: object): Promise<string> {
  const { body } = await berth.call('POST', `/servers/${server}/terminals`, request)
  return `/servers/${server}/terminals/${body.terminal.id}`
}

/** A viewer whose socket is not read until it is resumed; gathers the raw bytes of its frames. */
async function slowViewer(path: string): Promise<{ socket: Socket; received: () => Buffer }> {
  const { port, host } = new URL(berth.info.base_url)
  const socket = connect(Number(port), '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', () => {})
  socket.write(
    [
      `GET ${path}/attach HTTP/1.1`,
      `Host: ${host}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      `Authorization: Bearer ${berth.info.api_key}\r\n\r\n`,
    ].join('\r\n'),
  )
  await until(() => chunks.length > 0, 'the handshake')
  socket.pause()
  return { socket, received: () => Buffer.concat(chunks) }
}

test('a viewer that does not read holds nobody up who does, and is sent the screen anew when it reads', async () => {
  const path = await opened({ command: 'read -r go; seq 1 3000000; sleep 300' })
  const { socket, received } = await slowViewer(path)
  const reader = await TestViewer.attach(berth, `${path}/attach`)
  reader.type('go\r')
  await reader.shows('\r\n3000000\r\n', 30_000)
  // Everything, in order.
  expect(reader.text.replaceAll('\r', '').split('\n').slice(-3_000_001, -1).at(0)).toBe('1')
  expect(reader.text.length).toBeGreaterThan(22_000_000)
  socket.resume()
  await until(() => received().includes('\r\n3000000\r\n'), 'the screen anew')
  expect(received().includes('\x18\x1bc')).toBe(true)
  expect(received().length).toBeLessThan(15_000_000)
  socket.destroy()
  reader.close()
  await berth.call('DELETE', path)
})

test('a viewer that tells what it has drawn holds nobody up, skips what it has not, and shows the end', async () => {
  const path = await opened({ command: 'read -r go; seq 1 1000000; sleep 300' })
  const viewer = await TestViewer.attach(berth, `${path}/attach`)
  const sum = (): number => viewer.messages.reduce((bytes, message) => bytes + message, 0)
  let told = sum()
  viewer.send(JSON.stringify({ drawn: told }))
  viewer.type('go\r')
  // It draws nothing meanwhile, for which another program would wait.
  await until(async () => (await berth.exec(server, 'pgrep -x sleep')).exitCode === 0, 'the end', 30_000)
  expect(sum()).toBeLessThan(2_000_000)
  expect(viewer.text).not.toContain('1000000')
  // It is sent the screen when it has drawn all, until that is the last one.
  await until(() => {
    viewer.send(JSON.stringify({ drawn: sum() - told }))
    told = sum()
    return viewer.text.endsWith('\r\n999999\r\n1000000\r\n')
  }, 'the end of the output')
  expect(sum()).toBeLessThan(4_000_000)
  const lines = viewer.text
    .slice(viewer.text.lastIndexOf('\x1bc') + 2)
    .trimEnd()
    .split('\r\n')
  expect(lines.every((line, n) => n === 0 || Number(line) === Number(lines[n - 1]) + 1)).toBe(true)
  viewer.close()
  await berth.call('DELETE', path)
})

test('a program that nobody watches runs on, and its screen is the end of what it has printed', async () => {
  const path = await opened({ command: 'seq 1 700000; sleep 300' })
  const done = async () => (await berth.exec(server, 'pgrep -x sleep')).exitCode === 0
  await until(done, 'the end of the output', 30_000)
  const viewer = await TestViewer.attach(berth, `${path}/attach`)
  expect(viewer.text.slice(-16)).toBe('699999\r\n700000\r\n')
  const lines = viewer.text.trimEnd().split('\r\n').map(Number)
  // Without a gap, although most lines were never drawn.
  expect(lines.every((line, index) => index === 0 || line === (lines[index - 1] ?? 0) + 1)).toBe(true)
  expect(lines.length).toBeGreaterThan(4_000)
  await berth.call('DELETE', path)
})

test('coloured lines, which have to be drawn, arrive whole at the viewer and on the screen', async () => {
  const line =
    'awk \'BEGIN { for (n = 1; n <= 100000; n++) printf "\\033[3%dmline %d\\033[m\\n", n % 8, n }\''
  const path = await opened({ command: `${line}; sleep 300` })
  const viewer = await TestViewer.attach(berth, `${path}/attach`)
  await viewer.shows('line 100000\x1b[m\r\n', 30_000)
  const next = await TestViewer.attach(berth, `${path}/attach`)
  expect(next.text).toContain('line 99999')
  expect((await next.screen()).at(-2)).toBe('line 100000')
  await berth.call('DELETE', path)
})

test('plain lines after coloured ones run on: those that are dropped unseen hold the program up no more', async () => {
  const coloured = `seq 1 200000 | sed 's/.*/\\x1b[32mnumber &\\x1b[m/'`
  const path = await opened({ command: `${coloured}; seq 1 2000000; sleep 300` })
  const viewer = await TestViewer.attach(berth, `${path}/attach`)
  await viewer.shows('\r\n2000000\r\n', 30_000)
  viewer.close()
  await berth.call('DELETE', path)
})

test('a paste of a megabyte arrives whole, bracketed too, and so does one that nobody reads yet', async () => {
  const path = await opened({
    command:
      'stty raw -echo; printf ready; until [ -e go ]; do sleep 0.05; done; head -c 1000012 | md5sum; sleep 300',
  })
  const viewer = await TestViewer.attach(berth, `${path}/attach`)
  await viewer.shows('ready')
  const paste = `\x1b[200~${'a paste\r'.repeat(125_000)}\x1b[201~`
  viewer.type(paste)
  await berth.exec(server, 'touch go')
  await viewer.shows(new Bun.CryptoHasher('md5').update(paste).digest('hex'), 30_000)
  await berth.call('DELETE', path)
})

test('a viewer that types more than is kept is closed with a reason', async () => {
  const path = await opened({ command: 'stty raw -echo; printf ready; sleep 300' })
  const viewer = await TestViewer.attach(berth, `${path}/attach`)
  await viewer.shows('ready')
  for (let n = 0; n < 18; n += 1) viewer.type(new Uint8Array(1024 * 1024))
  expect((await viewer.closed).code).toBe(4009)
  await berth.call('DELETE', path)
})

// Two minutes, less what the tests above take.
if (!thorough) console.error('SKIP a viewer that answers no ping: only in CI and with --all')
test.skipIf(!thorough)(
  'a viewer that answers no ping is closed after two minutes, with a reason',
  async () => {
    if (silent === null) throw new Error('there is no such viewer')
    const { socket, received } = silent.viewer
    await until(() => socket.destroyed || socket.readableEnded, 'the close', 190_000)
    // A close frame: 4008 and the reason (RFC 6455, section 5.5.1).
    const close = received().indexOf(Buffer.from([0x0f, 0xa8]))
    expect(
      received()
        .subarray(close + 2)
        .toString(),
    ).toBe('the viewer has not read or answered for two minutes')
    const { body } = await berth.call('GET', silent.path)
    expect(body.terminal).toMatchObject({ viewers: 0, exit_code: null })
    await berth.call('DELETE', silent.path)
  },
  200_000,
)
