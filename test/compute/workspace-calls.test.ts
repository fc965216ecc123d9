import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RemoteWorkspace } from '../../src/compute/remote/workspace.ts'
import { ComputeError } from '../../src/compute/sandbox.ts'
import { SandboxdClient } from '../../src/compute/sandboxd/client.ts'
import { CALL_WINDOW, encodeJson, encodeSandboxdFrame, FRAME } from '../../src/compute/sandboxd/protocol.ts'
import { SocketTransport } from '../../src/compute/sandboxd/transport.ts'
import type { Workspace } from '../../src/compute/workspace.ts'
import { until } from './bench.ts'
import { CARRIERS, CalledServer } from './called-server.ts'
import { FalseSandboxd } from './false-sandboxd.ts'
import { Box, expectFault, WAYS } from './workspace-fixture.ts'

const MiB = 1024 * 1024
const LARGE = 50 * MiB

/** A file of twice the bytes by which a process may grow: it keeps some memory that it has freed. */
const HUGE = 96 * MiB

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A workspace behind a carrier; going out of scope it ends the sandboxd. */
async function remote(options: Parameters<typeof CalledServer.start>[2] = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'berth-calls-'))
  folders.push(folder)
  const root = join(folder, 'workspace')
  mkdirSync(root)
  const server = await CalledServer.start(folder, root, options)
  const workspace = new RemoteWorkspace({
    connect: async () => server.client,
    staging: join(folder, 'staging'),
  })
  return { root, server, workspace, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

/** Bytes in pieces of 64 KiB, each another. */
async function* pieces(total: number, onPiece: (sent: number) => void | Promise<void> = () => {}) {
  for (let sent = 0; sent < total; sent += 65_536) {
    await onPiece(sent)
    yield new Uint8Array(Math.min(65_536, total - sent)).fill(sent / 65_536)
  }
}

async function digest(content: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of content) hash.update(piece)
  return hash.digest('hex')
}

/** Reads a file in parts of 1 MiB. */
async function* parts(workspace: Workspace, path: string) {
  using file = await workspace.open(path)
  for (let offset = 0; offset < file.size; offset += MiB) yield await file.read(offset, MiB)
}

/** What `pieces(HUGE)` hashes to. */
let hugeDigest: string
beforeAll(async () => {
  hugeDigest = await digest(pieces(HUGE))
})

describe.each(CARRIERS)('over %s', (carrier) => {
  test('96 MiB are written and read whole, and neither side holds them in memory', async () => {
    await using far = await remote({ carrier })
    await far.workspace.write('warm', pieces(4 * MiB))
    await far.workspace.read('warm')
    const before = far.server.peakMemory
    await far.workspace.write('large', pieces(HUGE))
    expect(await digest(parts(far.workspace, 'large'))).toBe(hugeDigest)
    expect(await digest(once(await far.workspace.read('large', HUGE)))).toBe(hugeDigest)
    expect(far.server.peakMemory - before).toBeLessThan(64 * MiB)
  }, 120_000)

  test('a cut in the middle of a write is reported, the old file stays, and nothing else is left', async () => {
    await using far = await remote({ carrier })
    await far.workspace.write('f', new TextEncoder().encode('old'))
    const cut = (): void => {
      if (far.server.tcp === null) far.server.client.close('The wire was cut.')
      else far.server.tcp.cut()
    }
    const writing = far.workspace.write(
      'f',
      pieces(LARGE, (sent) => {
        if (sent === 10 * MiB) cut()
      }),
    )
    await expect(writing).rejects.toBeInstanceOf(ComputeError)
    expect(await far.server.sandboxd.exited).toBe(0)
    expect(readdirSync(far.root)).toEqual(['f'])
    expect(readFileSync(join(far.root, 'f'), 'utf8')).toBe('old')
    await expect(far.workspace.read('f')).rejects.toBeInstanceOf(ComputeError)
  }, 120_000)
})

async function* once(bytes: Uint8Array) {
  yield bytes
}

test('a connection that loses everything without a word is given up on both ends', async () => {
  const keepAlive = { everyMs: 200, silenceMs: 1_500 }
  await using far = await remote({ carrier: 'TCP', keepAlive })
  const writing = far.workspace.write(
    'f',
    pieces(LARGE, (sent) => {
      if (sent === 5 * MiB) far.server.tcp?.lose()
    }),
  )
  await expect(writing).rejects.toThrow('does not respond')
  expect(await far.server.sandboxd.exited).toBe(0)
  expect(readdirSync(far.root)).toEqual([])
})

test('a sandboxd that does not read holds the writer up, and others are served meanwhile', async () => {
  await using far = await remote()
  await far.workspace.write('other', new Uint8Array(10))
  let taken = 0
  far.server.sandboxd.kill('SIGSTOP')
  const writing = far.workspace.write(
    'f',
    pieces(LARGE, (sent) => {
      taken = sent
    }),
  )
  await until('the window is full', () => taken >= CALL_WINDOW)
  await Bun.sleep(100)
  expect(taken).toBeLessThanOrEqual(CALL_WINDOW)
  far.server.sandboxd.kill('SIGCONT')
  expect(await far.workspace.read('other')).toHaveLength(10)
  await writing
  expect(Bun.file(join(far.root, 'f')).size).toBe(LARGE)
}, 120_000)

test('a reader that does not read holds sandboxd up', async () => {
  await using far = await remote()
  writeFileSync(join(far.root, 'large'), new Uint8Array(LARGE))
  const before = far.server.received.bytes
  const reader = far.workspace.pack()[Symbol.asyncIterator]()
  await reader.next()
  const received = () => far.server.received.bytes - before
  await until('the window is full', () => received() >= CALL_WINDOW)
  await Bun.sleep(100)
  // What was read is given back in steps; frames have headers.
  expect(received()).toBeLessThan(1.5 * CALL_WINDOW)
  expect(await far.workspace.stat('large')).toEqual({ kind: 'file', size: LARGE })
  await reader.return?.(undefined)
})

test('a file that is larger than the server’s files may be is refused, and sandboxd lives on', async () => {
  await using far = await remote({ rlimits: { fileBytes: MiB } })
  await expectFault(far.workspace.write('f', pieces(4 * MiB)), 'disk_full')
  expect(readdirSync(far.root)).toEqual([])
  await far.workspace.write('f', new Uint8Array(1000))
})

describe.each(WAYS)('%s', (kind) => {
  test('a write whose content fails changes nothing and leaves nothing', async () => {
    await using box = await Box.open(kind)
    await box.write('f', 'old')
    const failing = pieces(LARGE, (sent) => {
      if (sent === 3 * MiB) throw new Error('no more')
    })
    await expect(box.workspace.write('f', failing)).rejects.toThrow('no more')
    await expect(
      box.workspace.write(
        'new/f',
        pieces(0, () => {}),
      ),
    ).resolves.toBeUndefined()
    expect(await box.text('f')).toBe('old')
    expect(await box.text('new/f')).toBe('')
    await until('the temporary file is gone', () => readdirSync(box.root).length === 2)
    expect(readdirSync(box.root).sort()).toEqual(['f', 'new'])
  })

  test('content that nothing can take is refused before it is read', async () => {
    await using box = await Box.open(kind)
    mkdirSync(box.at('folder'))
    for (const [path, fault] of [
      ['folder', 'not_a_file'],
      ['../outside/f', 'outside'],
      ['', 'root'],
      ['a\0b', 'invalid'],
    ] as const) {
      let taken = 0
      const content = pieces(LARGE, (sent) => {
        taken = sent
      })
      await expectFault(box.workspace.write(path, content), fault)
      expect(taken).toBeLessThanOrEqual(2 * CALL_WINDOW)
    }
    expect(readdirSync(box.root)).toEqual(['folder'])
    box.expectOutsideUntouched()
  })

  test('a file that is let go of while much is read is closed after that', async () => {
    await using box = await Box.open(kind)
    writeFileSync(box.at('large'), new Uint8Array(LARGE))
    const file = await box.workspace.open('large')
    const reading = [file.read(0, LARGE / 2), file.read(LARGE / 2, LARGE)]
    file[Symbol.dispose]()
    expect((await Promise.all(reading)).map(({ length }) => length)).toEqual([LARGE / 2, LARGE / 2])
    await expect(file.read(0, 1)).rejects.toThrow()
    expect(await box.leftOpen()).toEqual([])
  })

  test('200 files are listed, and many calls at once get their own answers', async () => {
    await using box = await Box.open(kind)
    const names = Array.from({ length: 200 }, (_, n) => `d/${String(n).padStart(3, '0')}`)
    await Promise.all(names.map((name) => box.write(name, name)))
    expect(await box.workspace.list({ all: false })).toEqual(names)
    const entries = await box.workspace.entries('d')
    expect(entries).toEqual(names.map((name) => ({ name: name.slice(2), kind: 'file' })))
    expect(await Promise.all(names.map((name) => box.text(name)))).toEqual(names)
  })
})

describe('a sandboxd that was taken over', () => {
  const json = (kind: number, value: unknown): Uint8Array => encodeJson(kind, 1, value)
  const result = (value: unknown): Uint8Array[] => [json(FRAME.result, value)]
  const stream = (text: string | Uint8Array): Uint8Array[] => [
    ...result(null),
    encodeSandboxdFrame(FRAME.data, 1, typeof text === 'string' ? new TextEncoder().encode(text) : text),
    encodeSandboxdFrame(FRAME.end, 1),
    encodeSandboxdFrame(FRAME.drop, 1),
  ]

  test.each<[string, Uint8Array[], (workspace: Workspace) => Promise<unknown>]>([
    ['a path that leads outside', stream('a\0../b'), (workspace) => workspace.list({ all: true })],
    ['an absolute path', stream('/etc/passwd'), (workspace) => workspace.list({ all: true })],
    ['a path twice', stream('a\0a'), (workspace) => workspace.list({ all: true })],
    ['paths in no order', stream('b\0a'), (workspace) => workspace.list({ all: true })],
    ['no text', stream(new Uint8Array([0xff])), (workspace) => workspace.list({ all: true })],
    ['an entry in another folder', stream('fa/b'), (workspace) => workspace.entries('.')],
    ['an entry of no kind', stream('xa'), (workspace) => workspace.entries('.')],
    ['the parent as an entry', stream('d..'), (workspace) => workspace.entries('.')],
    ['a size that is none', result({ kind: 'file', size: -1 }), (workspace) => workspace.stat('f')],
    ['a kind that is none', result({ kind: 'link', size: 1 }), (workspace) => workspace.stat('f')],
    ['a usage that is none', result('much'), (workspace) => workspace.usage()],
    ['a size of a file that is none', result({ size: 0.5 }), (workspace) => workspace.read('f')],
    ['no facts of a file', result({ size: 1, identity: 5 }), (workspace) => workspace.open('f')],
    ['neither yes nor no', result('yes'), (workspace) => workspace.unchanged('f', 'x')],
    [
      'more than it announced',
      [json(FRAME.result, { size: 2 }), encodeSandboxdFrame(FRAME.data, 1, new Uint8Array(3))],
      (workspace) => workspace.read('f'),
    ],
  ])('answers with %s and is not believed', async (_, frames, ask) => {
    await using sandboxd = new FalseSandboxd(frames)
    const client = await SandboxdClient.open(new SocketTransport(sandboxd.fd))
    const workspace = new RemoteWorkspace({ connect: async () => client, staging: '/nowhere' })
    await expect(ask(workspace)).rejects.toBeInstanceOf(ComputeError)
    client.close('enough')
  })
})
