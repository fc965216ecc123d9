import { heapStats } from 'bun:jsc'
import { afterAll, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ComputeError, type ExecCommand } from '../../src/compute/sandbox.ts'
import { FrameWriter } from '../../src/compute/sandboxd/channel.ts'
import { MOST_CALLS, SandboxdClient } from '../../src/compute/sandboxd/client.ts'
import { ProcessList } from '../../src/compute/sandboxd/process-list.ts'
import {
  CALL_WINDOW,
  CHUNK,
  encodeJson,
  encodeNumber,
  encodeSandboxdFrame,
  FRAME,
  FrameReader,
  MAX_FROM_SANDBOXD,
  MOST_WAITING,
  ProtocolError,
  type SandboxdConfiguration,
  UNCONFINED,
  WINDOW,
} from '../../src/compute/sandboxd/protocol.ts'
import {
  type FrameTransport,
  PipeTransport,
  SocketTransport,
  type TransportHandlers,
} from '../../src/compute/sandboxd/transport.ts'
import { SELF, TEST_PATH } from './bench.ts'
import { FalseSandboxd } from './false-sandboxd.ts'

const COMMAND: ExecCommand = { command: 'true', timeoutMs: 10_000, onOutput() {} }

const CONFIGURATION: SandboxdConfiguration = {
  workspace: '/',
  env: { PATH: TEST_PATH },
  // sandboxd ends all processes of its marker when it ends, those of another run of this file too.
  marker: randomBytes(12).toString('hex'),
  confinement: UNCONFINED,
  watch: {},
  rlimits: {},
  receivesTerminals: false,
  sendsSockets: false,
  silenceMs: null,
}

/** Reports that the first command runs. */
const STARTED = encodeSandboxdFrame(FRAME.started, 1, encodeNumber(7))

describe('a sandboxd that breaks the protocol', () => {
  const json = (kind: number, value: unknown): Uint8Array => encodeJson(kind, 1, value)
  const oversized = new Uint8Array(9)
  new DataView(oversized.buffer).setUint32(0, 0xffff_ffff, true)
  const tooMuch = Array.from({ length: 5 }, () =>
    encodeSandboxdFrame(FRAME.stdout, 1, new Uint8Array(WINDOW / 4)),
  )

  test.each<[string, Uint8Array[]]>([
    ['noise', [new Uint8Array(100_000).map((_, index) => (index * 7919) % 251)]],
    ['a frame over the size', [oversized]],
    ['a frame about no execution', [encodeSandboxdFrame(FRAME.stdout, 99, new Uint8Array(1))]],
    ['a frame of no kind', [encodeSandboxdFrame(77, 1)]],
    ['an exit that is no JSON', [encodeSandboxdFrame(FRAME.exit, 1, new TextEncoder().encode('{'))]],
    ['an exit without a code', [json(FRAME.exit, {})]],
    ['an exit with a code that is none', [json(FRAME.exit, { exitCode: 4096 })]],
    ['an exit that is null', [json(FRAME.exit, null)]],
    ['a failure without words', [json(FRAME.failure, { message: 5 })]],
    ['more output than it has credit for', tooMuch],
    ['output without bytes', [encodeSandboxdFrame(FRAME.stdout, 1)]],
    ['being ready twice', [encodeSandboxdFrame(FRAME.ready, 0), encodeSandboxdFrame(FRAME.ready, 0)]],
    ['a pong without a ping', [encodeSandboxdFrame(FRAME.pong, 0)]],
    ['a second start of a command', [STARTED]],
    ['input taken without bytes', [encodeSandboxdFrame(FRAME.typed, 1, encodeNumber(0))]],
  ])('by %s loses its sandbox; its command counts as killed', async (_, frames) => {
    await using sandboxd = new FalseSandboxd([STARTED, ...frames])
    const connection = await SandboxdClient.open(new SocketTransport(sandboxd.fd))
    const { exit } = connection.exec({ ...COMMAND, onOutput: () => new Promise(() => {}) })
    expect(await connection.closed).toContain('broke the protocol')
    const settled = await Promise.race([exit, Bun.sleep(100).then(() => null)])
    // Output that nobody takes keeps the result back, whichever side is at fault.
    if (settled !== null) expect(settled.exitCode).toBe(137)
    expect(() => connection.exec(COMMAND)).toThrow(ComputeError)
  })

  test.each<[string, Uint8Array[]]>([
    ['bytes of no call', [encodeSandboxdFrame(FRAME.data, 99, new Uint8Array(1))]],
    ['an answer that is no JSON', [encodeSandboxdFrame(FRAME.result, 1, new TextEncoder().encode('{'))]],
    ['an error without words', [json(FRAME.error, { code: 'refused' })]],
    ['the drop of a call that goes on', [encodeSandboxdFrame(FRAME.drop, 1)]],
    [
      'bytes after the end',
      [encodeSandboxdFrame(FRAME.end, 1), encodeSandboxdFrame(FRAME.data, 1, new Uint8Array(1))],
    ],
    ['no room', [encodeSandboxdFrame(FRAME.more, 1, encodeNumber(0))]],
    ['data without bytes', [encodeSandboxdFrame(FRAME.data, 1)]],
    ['more room than it has', [encodeSandboxdFrame(FRAME.more, 1, encodeNumber(0xffff_ffff))]],
    [
      'more bytes than there is room for',
      Array.from({ length: 5 }, () => encodeSandboxdFrame(FRAME.data, 1, new Uint8Array(CALL_WINDOW / 4))),
    ],
  ])('by %s in a call loses its sandbox', async (_, frames) => {
    await using sandboxd = new FalseSandboxd(frames)
    const connection = await SandboxdClient.open(new SocketTransport(sandboxd.fd))
    const call = connection.call('pause', {})
    expect(await connection.closed).toContain('broke the protocol')
    await expect(call.result).rejects.toThrow()
    await expect(call.stream.send(new Uint8Array(1))).rejects.toThrow()
  })

  test('by two answers in a call loses its sandbox; the first one counts', async () => {
    await using sandboxd = new FalseSandboxd([json(FRAME.result, 1), json(FRAME.result, 2)])
    const connection = await SandboxdClient.open(new SocketTransport(sandboxd.fd))
    const call = connection.call('pause', {})
    expect(await connection.closed).toContain('broke the protocol')
    expect(await call.result).toBe(1)
  })

  test('sends no more about a call that was given up than about another', async () => {
    const data = encodeSandboxdFrame(FRAME.data, 1, new Uint8Array(CALL_WINDOW / 4))
    await using sandboxd = new FalseSandboxd(Array(5).fill(data))
    const connection = await SandboxdClient.open(new SocketTransport(sandboxd.fd))
    connection.call('pause', {}).drop()
    expect(await connection.closed).toContain('broke the protocol')
  })

  test('may end a call with an error while it is given up, once', async () => {
    const error = json(FRAME.error, { code: 'refused', message: 'no' })
    await using sandboxd = new FalseSandboxd([error, error])
    const connection = await SandboxdClient.open(new SocketTransport(sandboxd.fd))
    connection.call('pause', {}).drop()
    expect(await connection.closed).toContain('call 1, which is not under way')
  })

  test('by its death fails a start that waits for it', async () => {
    await using sandboxd = new FalseSandboxd([])
    const connection = await SandboxdClient.open(new SocketTransport(sandboxd.fd))
    const configured = connection.configure(CONFIGURATION)
    sandboxd.process.kill('SIGKILL')
    expect(configured).rejects.toBeInstanceOf(ComputeError)
    await connection.closed
  })
})

/** What this process uses without what waits for the garbage collector, as opposed to its pages. */
function bytesInUse(): number {
  Bun.gc(true)
  const { heapSize, extraMemorySize } = heapStats()
  return heapSize + extraMemorySize
}

describe('a sandboxd that was taken over', () => {
  test('takes little memory with single bytes for a reader that takes none', async () => {
    const bytes = Array.from({ length: WINDOW }, (_, n) => (n % 2 === 0 ? FRAME.stdout : FRAME.stderr))
    const output = Buffer.concat(bytes.map((kind) => encodeSandboxdFrame(kind, 1, new Uint8Array(1))))
    await using sandboxd = new FalseSandboxd([STARTED, output, encodeSandboxdFrame(FRAME.pong, 0)])
    const connection = await SandboxdClient.open(new SocketTransport(sandboxd.fd))
    const received = { stdout: 0, stderr: 0 }
    const { promise: taken, resolve: take } = Promise.withResolvers<void>()
    const { exit } = connection.exec({
      ...COMMAND,
      onOutput(stream, data) {
        received[stream] += data.length
        return taken
      },
    })
    const before = bytesInUse()
    await connection.drained()
    expect(bytesInUse() - before).toBeLessThan(8 * 2 ** 20)
    take()
    connection.close('enough')
    await exit
    expect(received).toEqual({ stdout: WINDOW / 2, stderr: WINDOW / 2 })
  })

  test('and does not read loses its sandbox before much waits for it', async () => {
    await using sandboxd = new FalseSandboxd([])
    const connection = await SandboxdClient.open(new SocketTransport(sandboxd.fd))
    const size = { columns: 80, rows: 24 }
    const execution = connection.exec({ ...COMMAND, terminal: size })
    for (let sent = 0; sent < 10 * MOST_WAITING && !connection.over; sent++) execution.resize(size)
    expect(connection.over).toBe(true)
    expect(await connection.closed).toContain('does not read')
    await expect(execution.exit).rejects.toThrow(ComputeError)
  })

  test('and ends no call loses its sandbox before many are under way', async () => {
    const connection = await SandboxdClient.open(new AnsweringTransport())
    for (let calls = 0; calls < MOST_CALLS; calls++) connection.call('pause', {}).drop()
    expect(() => connection.call('pause', {})).toThrow(ComputeError)
    expect(await connection.closed).toBe('sandboxd ends no calls.')
  })

  test('and does not end a command in time loses its sandbox', async () => {
    const transport = new AnsweringTransport()
    const connection = await SandboxdClient.open(transport, null, 10)
    const { exit } = connection.exec({ ...COMMAND, timeoutMs: 1 })
    transport.send(STARTED)
    expect(await connection.closed).toBe('sandboxd did not end a command.')
    expect((await exit).exitCode).toBe(137)
  })

  test.each([undefined, { columns: 80, rows: 24 }])(
    'and does not begin a command loses its sandbox (terminal: %p)',
    async (terminal) => {
      const connection = await SandboxdClient.open(new AnsweringTransport(), null, 10)
      const { exit, pid } = connection.exec({ ...COMMAND, timeoutMs: null, ...(terminal && { terminal }) })
      expect(await connection.closed).toBe('sandboxd did not begin a command.')
      await expect(pid).rejects.toThrow(ComputeError)
      await expect(exit).rejects.toThrow(ComputeError)
    },
  )

  const entry = {
    ...{ pid: 2, parentPid: 1, command: 'sleep', state: 'sleeping', cpuMs: 1, startedMs: 1 },
    ...{ memoryBytes: 1, ports: [], execution: null },
  }
  const line = (value: unknown): string => `${JSON.stringify(value)}\n`

  test.each<[string, unknown, string]>([
    ['a time that no date can have', { at: 1e300 }, line(entry)],
    ['a start that no date can have', { at: 1 }, line({ ...entry, startedMs: 1e300 })],
    ['no time', null, line(entry)],
    ['a process without a number', { at: 1 }, line({ ...entry, pid: null })],
    ['a process that is a prototype', { at: 1 }, '{"__proto__": {"pid": 2}}\n'],
    ['an endless line', { at: 1 }, `[${'[],'.repeat(20_000)}[]]\n`],
    ['a line without an end', { at: 1 }, JSON.stringify(entry)],
    ['no JSON', { at: 1 }, '{\n'],
  ])('shows no processes if it sends %s', async (_, result, lines) => {
    const bytes = Buffer.from(lines)
    const pieces = Array.from({ length: Math.ceil(bytes.length / CHUNK) }, (_, n) =>
      encodeSandboxdFrame(FRAME.data, 1, bytes.subarray(n * CHUNK, (n + 1) * CHUNK)),
    )
    const frames = [encodeJson(FRAME.result, 1, result), ...pieces, encodeSandboxdFrame(FRAME.end, 1)]
    await using sandboxd = new FalseSandboxd(frames)
    const connection = await SandboxdClient.open(new SocketTransport(sandboxd.fd))
    await expect(new ProcessList(connection).read()).rejects.toBeInstanceOf(ComputeError)
    connection.close('enough')
  })
})

/** The way to a sandboxd that responds to pings, and to nothing else. */
class AnsweringTransport implements FrameTransport {
  #handlers: TransportHandlers | null = null
  readonly #reader = new FrameReader(2 ** 20, (kind, id) => {
    if (kind === FRAME.ping) setImmediate(() => this.send(encodeSandboxdFrame(FRAME.pong, id)))
  })

  async open(handlers: TransportHandlers): Promise<void> {
    this.#handlers = handlers
  }

  write(bytes: Uint8Array): number {
    this.#reader.push(bytes)
    return bytes.length
  }

  /** Sends a frame as sandboxd. */
  send(frame: Uint8Array): void {
    this.#handlers?.data(frame)
  }

  terminate(): void {
    this.#handlers?.closed()
    this.#handlers = null
  }
}

describe('frames', () => {
  const frames = [
    encodeSandboxdFrame(FRAME.stdout, 1, new TextEncoder().encode('one')),
    encodeSandboxdFrame(FRAME.pong, 0),
    encodeSandboxdFrame(FRAME.stderr, 0xffff_ffff, new Uint8Array(1000)),
  ]
  const stream = Buffer.concat(frames)

  test.each([1, 2, 7, 9, 10, 500, 5000])('are cut alike from pieces of %p bytes', (size) => {
    const seen: Array<[number, number, number]> = []
    const reader = new FrameReader(MAX_FROM_SANDBOXD, (kind, id, payload) =>
      seen.push([kind, id, payload.length]),
    )
    for (let at = 0; at < stream.length; at += size) reader.push(stream.subarray(at, at + size))
    expect(seen).toEqual([
      [FRAME.stdout, 1, 3],
      [FRAME.pong, 0, 0],
      [FRAME.stderr, 0xffff_ffff, 1000],
    ])
  })

  test.each([1, 10, 100, 700, 5000])(
    'of a streamed kind pass in parts as they come, %p bytes at a time',
    (size) => {
      const content = randomBytes(1000)
      const stream = Buffer.concat([
        encodeSandboxdFrame(FRAME.data, 1, content),
        encodeSandboxdFrame(FRAME.end, 1),
        encodeSandboxdFrame(FRAME.data, 2, content),
      ])
      const seen: Array<[number, number, Uint8Array]> = []
      const note = (...frame: (typeof seen)[number]) => void seen.push(frame)
      const reader = new FrameReader(1000, note, FRAME.data)
      reader.push(stream.subarray(0, 9 + 400))
      expect(seen.map(([, , part]) => part.length)).toEqual([400])
      for (let at = 409; at < stream.length; at += size) reader.push(stream.subarray(at, at + size))
      for (const id of [1, 2])
        expect(
          Buffer.concat(seen.flatMap(([kind, of, part]) => (kind === FRAME.data && of === id ? part : []))),
        ).toEqual(content)
      expect(seen.filter(([kind]) => kind === FRAME.end)).toHaveLength(1)
      expect(seen.every(([kind, , part]) => kind === FRAME.end || part.length > 0)).toBeTrue()
    },
  )

  test('that announce too much are refused before anything is stored', () => {
    const reader = new FrameReader(10, () => {})
    expect(() => reader.push(encodeSandboxdFrame(FRAME.stdout, 1, new Uint8Array(11)))).toThrow(ProtocolError)
  })

  test.each([1, 3, 10, 1000])('reach a peer that takes %p bytes at a time, whole and in order', (size) => {
    const taken: number[] = []
    let room = size
    const writer = new FrameWriter({
      write(data) {
        const piece = data.subarray(0, room)
        room -= piece.length
        taken.push(...piece)
        return piece.length
      },
    })
    for (const frame of frames) writer.send(frame)
    while (writer.pending > 0) {
      room = size
      writer.flush()
    }
    expect(Buffer.from(taken)).toEqual(stream)
  })

  test('of one turn are written together, up to 64 KiB at a time', async () => {
    const writes: number[] = []
    const { promise: first, resolve } = Promise.withResolvers<void>()
    const writer = new FrameWriter({
      write(data) {
        writes.push(data.length)
        resolve()
        return data.length
      },
    })
    for (let n = 0; n < 100; n += 1) writer.send(new Uint8Array(100))
    expect(writes).toEqual([])
    await first
    expect(writes).toEqual([10_000])
    for (const length of [40_000, 20_000, CHUNK, 5]) writer.send(new Uint8Array(length))
    // What is as much does not wait for the end of the turn.
    expect(writes).toEqual([10_000, 60_000, CHUNK])
    writer.flush()
    expect(writes).toEqual([10_000, 60_000, CHUNK, 5])
  })
})

/** A sandboxd of its own process, reached by standard input and output. */
const piped = () =>
  Bun.spawn([...SELF.argv, '__sandboxd', '--stdio', CONFIGURATION.marker], {
    stdio: ['pipe', 'pipe', 'inherit'],
    killSignal: 'SIGKILL',
  })

describe('a sandboxd on standard input and output', () => {
  // Held as an instance holds its own: `doctor --leaks --fix` of another test ends what has no instance.
  const folder = mkdtempSync(join(tmpdir(), 'berth-piped-'))
  const lock = openSync(join(folder, 'lock'), 'w')
  afterAll(() => {
    closeSync(lock)
    rmSync(folder, { recursive: true })
  })

  const transportOf = ({ stdin, stdout }: ReturnType<typeof piped>) => new PipeTransport(stdout, stdin)

  test('runs commands with input and output of any size, and ends with its pipe', async () => {
    await using sandboxd = piped()
    const connection = await SandboxdClient.open(transportOf(sandboxd))
    await connection.configure(CONFIGURATION)
    const stdin = new Uint8Array(3_000_000).map((_, index) => index % 251)
    const received: Uint8Array[] = []
    const onOutput = (_: string, data: Uint8Array) => void received.push(data)
    const { exit } = connection.exec({ ...COMMAND, command: 'cat', stdin, onOutput })
    expect(await exit).toMatchObject({ exitCode: 0 })
    expect(Buffer.concat(received).equals(stdin)).toBe(true)
    const sleep = connection.exec({ ...COMMAND, command: 'sleep 300' })
    await sleep.pid
    connection.close('enough')
    expect(await sandboxd.exited).toBe(0)
    expect((await sleep.exit).exitCode).toBe(137)
  })

  test('serves calls whose streams wait for each other’s room, and gives up what is dropped', async () => {
    using echo = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: { data: (socket, chunk) => void socket.write(chunk) },
    })
    await using sandboxd = piped()
    const connection = await SandboxdClient.open(transportOf(sandboxd))
    await connection.configure(CONFIGURATION)
    const dial = async () => {
      const call = connection.call('dial', { host: '127.0.0.1', port: echo.port })
      await call.result
      return call
    }
    const [slow, fast] = [await dial(), await dial()]
    let written = 0
    for (let more = 1; more > 0; ) {
      more = slow.stream.write(new Uint8Array(65_536))
      written += more
    }
    expect(written).toBe(CALL_WINDOW)
    await fast.stream.send(new TextEncoder().encode('through'))
    expect(Buffer.from((await fast.stream.read()) ?? []).toString()).toBe('through')
    slow.drop()
    await expect(slow.stream.read()).rejects.toThrow('given up')
    fast.stream.end()
    expect(await fast.stream.read()).toBe(null)
    const refused = connection.call('dial', { host: '::1', port: echo.port })
    await expect(refused.result).rejects.toMatchObject({ code: 'refused' })
    expect((await connection.exec(COMMAND).exit).exitCode).toBe(0)
    connection.close('enough')
    await sandboxd.exited
  })

  test('that does not respond is given up', async () => {
    await using sandboxd = piped()
    const connection = await SandboxdClient.open(transportOf(sandboxd), { everyMs: 50, silenceMs: 4_000 })
    await connection.configure(CONFIGURATION)
    sandboxd.kill('SIGSTOP')
    expect(await connection.closed).toBe('sandboxd does not respond.')
  })

  test('ends when berth is silent, and not before', async () => {
    await using sandboxd = piped()
    // Far more than either process waits for a processor on a busy machine.
    const silenceMs = 3_000
    const connection = await SandboxdClient.open(transportOf(sandboxd), { everyMs: 100, silenceMs })
    await connection.configure({ ...CONFIGURATION, silenceMs })
    await Bun.sleep(1.5 * silenceMs)
    expect((await connection.exec(COMMAND).exit).exitCode).toBe(0)
    connection.close('enough')
    await sandboxd.exited

    await using other = piped()
    const mute = await SandboxdClient.open(transportOf(other))
    await mute.configure({ ...CONFIGURATION, silenceMs: 100 })
    expect(await other.exited).toBe(0)
  }, 120_000)
})

const namespaces = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--mount-proc']

// In a namespace of its own: what must not happen would end every process of this machine.
test.skipIf(Bun.spawnSync([...namespaces, 'true']).exitCode !== 0)(
  'a sandboxd that is not process 1 of its namespace ends nothing but its own',
  async () => {
    const sandboxd = [...SELF.argv, '__sandboxd', '--stdio', CONFIGURATION.marker].join(' ')
    const script = `sleep 300 & other=$!; sh -c '${sandboxd}; true'; grep -q "State:.S" /proc/$other/status && echo it lives`
    const configure = encodeJson(FRAME.configure, 0, CONFIGURATION)
    const { stdout } = Bun.spawnSync([...namespaces, 'sh', '-c', script], { stdin: configure })
    expect(stdout.toString()).toEndWith('it lives\n')
  },
)
