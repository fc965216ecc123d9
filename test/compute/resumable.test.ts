import { describe, expect, test } from 'bun:test'
import { chownSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ResumableTransport } from '../../src/compute/engine/resumable.ts'
import { findDescendants, readMarker, signal } from '../../src/compute/processes.ts'
import { RemoteSandbox } from '../../src/compute/remote/sandbox.ts'
import { ComputeError } from '../../src/compute/sandbox.ts'
import {
  encodeJson,
  encodeSandboxdFrame,
  FRAME,
  FrameReader,
  ProtocolError,
} from '../../src/compute/sandboxd/protocol.ts'
import { CARRIED, MAX_KEPT, ResumableStream, sign } from '../../src/compute/sandboxd/resumable.ts'
import {
  type FrameTransport,
  SocketTransport,
  type TransportHandlers,
} from '../../src/compute/sandboxd/transport.ts'
import { VERSION } from '../../src/runtime/version.ts'
import { asUser, NOBODY, whyNoOrdinaryUser } from '../support/ordinary-user.ts'
import { until } from '../support/processes.ts'
import { LIMITS } from './bench.ts'
import { FalseSandboxd } from './false-sandboxd.ts'
import { ListeningServer } from './listening-server.ts'

/** Prints `megabytes` times a million of the same byte and the count. */
const printed = (megabytes: number): string =>
  `n=0; while [ $n -lt ${megabytes} ]; do n=$((n+1)); head -c 1000000 /dev/zero | tr "\\0" x; echo $n; done`

function hashOfPrinted(megabytes: number): string {
  const hash = new Bun.CryptoHasher('sha256')
  for (let n = 1; n <= megabytes; n++) hash.update(Buffer.alloc(1_000_000, 'x')).update(`${n}\n`)
  return hash.digest('hex')
}

/** Passes a number of bytes on in one direction, and then is cut, wherever that is in a frame. */
class CutTransport implements FrameTransport {
  #left: number

  constructor(
    private readonly inner: FrameTransport,
    private readonly direction: 'from server' | 'to server',
    bytes: number,
  ) {
    this.#left = bytes
  }

  open(handlers: TransportHandlers): Promise<void> {
    return this.inner.open({
      ...handlers,
      data: (chunk) => {
        const passed = this.direction === 'from server' ? this.#take(chunk.length) : chunk.length
        if (passed > 0) handlers.data(chunk.subarray(0, passed))
      },
    })
  }

  write(bytes: Uint8Array): number {
    if (this.direction === 'from server') return this.inner.write(bytes)
    const passed = Math.min(bytes.length, this.#left)
    return passed === 0 ? 0 : this.#take(this.inner.write(bytes.subarray(0, passed)))
  }

  terminate(): void {
    this.inner.terminate()
  }

  #take(wanted: number): number {
    const taken = Math.min(wanted, this.#left)
    this.#left -= taken
    if (this.#left === 0) setImmediate(() => this.inner.terminate())
    return taken
  }
}

describe('a stream that outlives its carriers', () => {
  test('loses no byte of 54 MB of output in 20 cuts', async () => {
    await using server = await ListeningServer.start()
    const hash = new Bun.CryptoHasher('sha256')
    let bytes = 0
    let cuts = 0
    const { exit } = server.client.exec({
      command: printed(54),
      timeoutMs: 120_000,
      onOutput: (_, data) => {
        hash.update(data)
        bytes += data.length
        if (bytes < (cuts + 1) * 2_500_000 || cuts === 20) return
        cuts += 1
        server.carriers.at(-1)?.kill('SIGKILL')
      },
    })
    expect(await exit).toMatchObject({ exitCode: 0 })
    expect(hash.digest('hex')).toBe(hashOfPrinted(54))
    expect(cuts).toBe(20)
    expect(server.carriers.length).toBeGreaterThan(cuts)
  }, 120_000)

  test('loses no byte when it is cut in the middle of a frame', async () => {
    const carry = (carrier: FrameTransport) => new CutTransport(carrier, 'from server', 500_009)
    await using server = await ListeningServer.start({ carry })
    expect(Bun.CryptoHasher.hash('sha256', await server.run(printed(6)), 'hex')).toBe(hashOfPrinted(6))
    expect(server.carriers.length).toBeGreaterThan(10)
  }, 60_000)

  test('loses no byte of an upload of 20 MB in cuts', async () => {
    const carry = (carrier: FrameTransport) => new CutTransport(carrier, 'to server', 2_000_003)
    await using server = await ListeningServer.start({ carry })
    const upload = new Uint8Array(20_000_000).map((_, index) => (index * 7919) % 251)
    const hash = Bun.CryptoHasher.hash('sha256', upload, 'hex')
    expect(await server.run('sha256sum', upload)).toBe(`${hash}  -\n`)
    expect(server.carriers.length).toBeGreaterThan(10)
  }, 60_000)

  test('goes on over another carrier if one is silent, and ignores what the old one brings', async () => {
    await using server = await ListeningServer.start({ pingMs: 100, silenceMs: 2_000 })
    const running = server.run(`sleep 1; ${printed(3)}`)
    const silent = server.carriers[0]
    silent?.kill('SIGSTOP')
    await until(() => server.carriers.length > 1 && server.transport.interruption === null, 'another carrier')
    expect(server.attempts).toContain('The server has not responded for 2 seconds.')
    silent?.kill('SIGCONT')
    expect(Bun.CryptoHasher.hash('sha256', await running, 'hex')).toBe(hashOfPrinted(3))
  }, 60_000)

  test('goes on after a cut that is shorter than the lease, and says meanwhile why a server is not reached', async () => {
    let isCut = false
    const carry = (carrier: FrameTransport): FrameTransport => {
      if (isCut) throw new Error('The engine does not respond.')
      return carrier
    }
    await using server = await ListeningServer.start({ carry, leaseMs: 30_000 })
    const running = server.run('sleep 1; echo one; sleep 3; echo two')
    isCut = true
    server.carriers[0]?.kill('SIGKILL')
    await until(() => server.transport.interruption !== null, 'it counts as interrupted')
    expect(() => server.client.exec({ command: 'true', timeoutMs: null, onOutput() {} })).toThrow(
      new ComputeError('The server cannot be reached at present. The engine does not respond.'),
    )
    await Bun.sleep(3_000)
    isCut = false
    expect(await running).toBe('one\ntwo\n')
    expect(server.transport.interruption).toBeNull()
  }, 60_000)

  test('keeps a command whose time is over during a cut, and its result', async () => {
    let isCut = false
    const carry = (carrier: FrameTransport): FrameTransport => {
      if (isCut) throw new Error('The engine does not respond.')
      return carrier
    }
    await using server = await ListeningServer.start({ carry, overdueMs: 100 })
    const execution = server.client.exec({ command: 'sleep 300', timeoutMs: 2_500, onOutput() {} })
    await execution.pid
    isCut = true
    server.carriers[0]?.kill('SIGKILL')
    await until(() => server.transport.interruption !== null, 'it counts as interrupted')
    // Long after sandboxd should have reported the end.
    await Bun.sleep(3_000)
    isCut = false
    expect(await execution.exit).toMatchObject({ timedOut: true })
  }, 60_000)

  test('ends what runs when nothing has joined for the lease, and not before; files stay', async () => {
    await using server = await ListeningServer.start({ leaseMs: 2_000 })
    writeFileSync(join(server.workspace, 'kept'), 'kept')
    const execution = server.client.exec({ command: 'sleep 300', timeoutMs: null, onOutput() {} })
    const pid = await execution.pid
    const gone = performance.now()
    server.transport.terminate()
    expect(await server.sandboxd.exited).toBe(0)
    expect(performance.now() - gone).toBeGreaterThan(1_900)
    // This process is not its parent: somebody else has to take it first.
    await until(() => !existsSync(`/proc/${pid}`), 'the command has ended')
    expect(existsSync(join(server.workspace, 'kept'))).toBe(true)
  }, 60_000)

  test('is given up by berth, too, after the lease', async () => {
    await using server = await ListeningServer.start({ leaseMs: 1_000 })
    const printed: string[] = []
    const onOutput = (stream: string, data: Uint8Array): void => {
      printed.push(`${stream}: ${Buffer.from(data)}`)
    }
    const running = server.client.exec({ command: 'exec sleep 60', timeoutMs: 60_000, onOutput })
    const pid = await running.pid
    signal(server.sandboxd.pid, 'SIGKILL')
    // Where sandboxd is process 1, its end is that of its commands.
    if (pid !== null) signal(pid, 'SIGKILL')
    const unsent = server.client.exec({ command: 'true', timeoutMs: 60_000, onOutput })
    const why = 'The server is not running any more; start it again. It could not be reached for 1 seconds: '
    expect(await server.client.closed).toStartWith('It could not be reached for 1 seconds: ')
    await expect(unsent.exit).rejects.toThrow(why)
    expect((await running.exit).exitCode).toBe(137)
    expect(printed).toEqual([expect.stringContaining(`stderr: berth: ${why}`)])
    expect(server.transport.interruption).toStartWith('It could not be reached for 1 seconds: ')
  }, 60_000)

  test('ends with sandboxd at once, after its last bytes', async () => {
    await using server = await ListeningServer.start()
    // Several, since it is one that ends last whose end nothing else waits for.
    const commands = Array.from({ length: 20 }, () => {
      let output = ''
      const { exit } = server.client.exec({
        command: 'trap "echo ended; exit 3" TERM; echo ready; sleep 300 & wait',
        timeoutMs: null,
        onOutput(_, data) {
          output += Buffer.from(data).toString()
        },
      })
      return { exit, output: () => output }
    })
    await until(() => commands.every(({ output }) => output() === 'ready\n'), 'the traps are set')
    server.client.shutdown()
    expect(await server.client.closed).toBe('sandboxd ended.')
    for (const { exit, output } of commands) {
      expect(await exit).toMatchObject({ exitCode: 3 })
      expect(output()).toBe('ready\nended\n')
    }
    expect(await server.sandboxd.exited).toBe(0)
    expect(server.carriers).toHaveLength(1)
  }, 60_000)
})

describe('the socket of a server', () => {
  /** Sends bytes over a carrier of its own; resolves to what comes until that is closed. */
  async function send(server: ListeningServer, ...frames: Uint8Array[]): Promise<[number, string][]> {
    const received: [number, string][] = []
    const reader = new FrameReader(2 ** 16, (kind, _, payload) =>
      received.push([kind, Buffer.from(payload).toString()]),
    )
    const carrier = await server.connect()
    const closed = Promise.withResolvers<void>()
    await carrier.open({
      data(chunk) {
        reader.push(chunk)
        carrier.terminate()
      },
      drain() {},
      closed: () => closed.resolve(),
    })
    carrier.write(Buffer.concat(frames))
    await closed.promise
    return received
  }

  const other = (server: ListeningServer, key: Uint8Array) =>
    new ResumableTransport({ connect: () => server.connect(), key, leaseMs: 60_000 })

  const handlers = { data() {}, drain() {}, closed() {} }

  test('refuses another key, and another berth with its key, and cuts nothing', async () => {
    await using server = await ListeningServer.start()
    const running = server.run('sleep 2; echo whole')
    await expect(other(server, new Uint8Array(32)).open(handlers)).rejects.toThrow('Its key is another one.')
    await expect(other(server, server.key).open(handlers)).rejects.toThrow('a berth that has ended')
    expect(await running).toBe('whole\n')
    expect(server.attempts).toHaveLength(1)
  }, 60_000)

  test('takes no request twice, nor one that was changed', async () => {
    const written: Uint8Array[] = []
    const carry = (carrier: FrameTransport): FrameTransport => ({
      open: (of) => carrier.open(of),
      terminate: () => carrier.terminate(),
      write(bytes) {
        const count = carrier.write(bytes)
        written.push(bytes.slice(0, count))
        return count
      },
    })
    await using server = await ListeningServer.start({ carry })
    const recorded = Buffer.concat(written)
    expect(await send(server, recorded)).toContainEqual([CARRIED.refusal, 'The request was used before.'])
    const [request] = written
    const changed = Buffer.from(request ?? [])
    changed[changed.length - 3] = 0x39
    expect(await send(server, changed)).toEqual([[CARRIED.refusal, 'Its key is another one.']])
    const unsigned = encodeJson(CARRIED.join, 0, { key: 'none' })
    expect(await send(server, unsigned)).toEqual([[CARRIED.refusal, 'Its key is another one.']])
    expect(await server.run('echo on')).toBe('on\n')
    expect(server.attempts).toHaveLength(1)
  }, 60_000)

  test('has room for berth while many connections say nothing', async () => {
    await using server = await ListeningServer.start()
    let open = 0
    const connections = await Promise.all(
      Array.from({ length: 100 }, () =>
        Bun.connect({
          unix: server.socket,
          socket: { open: () => void open++, data() {}, close: () => void open--, error() {} },
        }),
      ),
    )
    await until(() => open === 64, 'the oldest are closed')
    server.carriers[0]?.kill('SIGKILL')
    await until(() => server.attempts.length > 1, 'berth notices the cut')
    expect(await server.run('echo on')).toBe('on\n')
    await until(() => open === 0, 'the others are closed')
    for (const connection of connections) connection.terminate()
  }, 60_000)
})

describe('a server', () => {
  test('whose sandboxd has another version is refused; both are named', async () => {
    const ready = encodeSandboxdFrame(FRAME.ready, 0, Buffer.from('0.0.1'))
    await using sandboxd = new FalseSandboxd([ready])
    const started = RemoteSandbox.start({
      transport: new SocketTransport(sandboxd.fd),
      keepAlive: null,
      configuration: {} as never,
      ...{ tools: '/', caches: '/', limits: LIMITS, memoryEnforcedBy: 'none' },
      network: { network: 'shared', outboundControl: null },
      remove: async () => {},
    })
    await expect(started).rejects.toThrow(`sandboxd of berth 0.0.1, but this is berth ${VERSION}`)
  })

  test('says its version, and is found by its arguments', async () => {
    await using server = await ListeningServer.start()
    expect(server.version).toBe(VERSION)
    expect(readMarker(server.sandboxd.pid)).toBe(`${server.marker}00000000`)
  }, 60_000)

  test('that does not have the key is not believed', async () => {
    const impostor: FrameTransport = {
      async open(of) {
        setTimeout(() =>
          of.data(
            encodeSandboxdFrame(
              CARRIED.welcome,
              0,
              sign(new Uint8Array(32), 'welcome', { attempt: 1, received: 0 }),
            ),
          ),
        )
      },
      write: (bytes) => bytes.length,
      terminate() {},
    }
    const key = new Uint8Array(32).fill(1)
    const transport = new ResumableTransport({ connect: async () => impostor, key, leaseMs: 100 })
    await expect(transport.open({ data() {}, drain() {}, closed() {} })).rejects.toThrow(
      'does not have its key',
    )
  })
})

describe('one end of a stream', () => {
  const end = () => {
    const stream = new ResumableStream({ data() {}, drain: () => void drained.push(1) })
    const drained: number[] = []
    const frames: number[] = []
    const carrier = {
      pending: 0,
      send: (_: number, __: number, bytes: Uint8Array) => void frames.push(bytes.length),
      flush() {},
    }
    const times = { pingMs: 60_000, silenceMs: 60_000, leaseMs: 60_000 }
    return {
      stream,
      drained,
      frames,
      attach: (count: number) => stream.attach(carrier as never, count, times, () => {}),
    }
  }

  const count = (bytes: number): Uint8Array => new Uint8Array(new Float64Array([bytes]).buffer)

  test('keeps 8 MiB and takes more when the peer has confirmed some', () => {
    const { stream, drained, attach } = end()
    expect(stream.write(new Uint8Array(MAX_KEPT + 5))).toBe(MAX_KEPT)
    expect(stream.write(new Uint8Array(5))).toBe(0)
    attach(0)
    stream.receive(CARRIED.confirm, count(3))
    expect(drained).toHaveLength(1)
    expect(stream.write(new Uint8Array(5))).toBe(3)
    stream.detach()
  })

  test.each([11, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'takes no confirmation of %p of its 10 bytes',
    (bytes) => {
      const { stream, attach } = end()
      stream.write(new Uint8Array(10))
      attach(0)
      expect(() => stream.receive(CARRIED.confirm, count(bytes))).toThrow(ProtocolError)
      expect(stream.canResume(bytes)).toBe(false)
      stream.detach()
    },
  )

  test('takes no confirmation of bytes that no carrier was given', () => {
    const { stream } = end()
    const full = { pending: Number.POSITIVE_INFINITY, send() {}, flush() {} }
    stream.attach(full as never, 0, { pingMs: 60_000, silenceMs: 60_000, leaseMs: 60_000 }, () => {})
    stream.write(new Uint8Array(10))
    expect(() => stream.receive(CARRIED.confirm, count(5))).toThrow(ProtocolError)
    stream.detach()
  })

  test('sends again what was not confirmed, and nothing else', () => {
    const { stream, frames, attach } = end()
    attach(0)
    stream.write(new Uint8Array(100_000))
    stream.receive(CARRIED.confirm, count(70_000))
    frames.splice(0)
    attach(90_000)
    expect(frames.reduce((sum, bytes) => sum + bytes, 0)).toBe(10_000)
    expect(() => attach(80_000)).toThrow(ProtocolError)
    stream.detach()
  })
})

/** Starts sandboxd as process 1 of namespaces of its own, as an engine does, with an ordinary user. */
const inNamespaces = (argv: string[], folder: string): string[] => {
  chownSync(folder, NOBODY, NOBODY)
  chownSync(join(folder, 'workspace'), NOBODY, NOBODY)
  const users = ['--unshare-user', '--uid', '1000', '--gid', '1000']
  const shown = ['--dev-bind', '/', '/', '--proc', '/proc']
  return asUser(['bwrap', '--unshare-pid', '--as-pid-1', ...users, ...shown, '--', ...argv])
}

/** Starts a program there, whose parent is outside. */
const enterNamespaces = (argv: string[], outer: number): string[] => {
  const [inner] = findDescendants(outer)
  if (inner === undefined) return ['false']
  const as = ['--setuid', '1000', '--setgid', '1000']
  return ['nsenter', '--target', `${inner}`, '--user', '--mount', '--pid', ...as, '--', ...argv]
}

const whyNoNamespaces =
  process.getuid?.() === 0
    ? whyNoOrdinaryUser()
    : 'only root can start a program in the namespaces of another user'
if (whyNoNamespaces !== null)
  console.warn(`Commands beside a server's socket are not tried: ${whyNoNamespaces}.`)

describe.skipIf(whyNoNamespaces !== null)('a command beside the socket of its server', () => {
  const start = () => ListeningServer.start({ wrap: inNamespaces, enter: enterNamespaces })

  /** Runs a script of Bun inside, which has the socket's path as `path`. */
  const script = (server: ListeningServer, source: string): Promise<string> => {
    writeFileSync(
      join(server.workspace, 'script.js'),
      `const path = ${JSON.stringify(server.socket)};\n${source}`,
    )
    return server.run(`${process.execPath} script.js 2>&1`)
  }

  test('finds that sandboxd is process 1, which it can neither read, trace, stop nor end', async () => {
    await using server = await start()
    expect(await server.run('tr "\\0" " " </proc/1/cmdline')).toContain(
      `__sandboxd --listen ${server.socket}`,
    )
    const started = server.carriers.length
    const key = server.key.toString('base64')
    for (const read of [
      'cat /proc/1/environ',
      'head -c 1 /proc/1/mem',
      'cat /proc/1/maps',
      'ls -l /proc/1/fd/ | grep -c "\\->"; cat /proc/1/fd/0',
    ]) {
      const output = await server.run(`(${read}) 2>&1; echo $?`)
      expect(output).toMatch(/Permission denied|Operation not permitted|No such/)
      expect(output).toEndWith('1\n')
      expect(output).not.toContain(key)
    }
    if (Bun.which('strace') !== null) expect(await server.run('strace -p 1 2>&1')).toContain('not permitted')
    await server.run('kill -KILL 1; kill -STOP 1; kill -TERM 1; kill -INT 1; kill -SEGV 1')
    expect(await server.run('echo on')).toBe('on\n')
    expect(server.carriers).toHaveLength(started)
  }, 60_000)

  test('gets nothing from the socket, and does not keep berth from it by endless connections', async () => {
    await using server = await start()
    const flood = script(
      server,
      `let read = 0, refused = 0
      // A frame to join by, with a signature that is wrong: only berth's own kind of peer gets a refusal.
      const request = new Uint8Array(9 + 100)
      request[0] = 100
      request[4] = ${CARRIED.join}
      const ends = performance.now() + 6000
      async function connect() {
        while (performance.now() < ends) {
          const closed = Promise.withResolvers()
          try {
            const socket = await Bun.connect({ unix: path, socket: {
              data(_, bytes) { read += bytes.length }, close: closed.resolve, error: closed.resolve } })
            socket.write(request)
            await closed.promise
          } catch { await Bun.sleep(1) }
          refused++
        }
      }
      await Promise.all(Array.from({ length: 200 }, connect))
      console.log(JSON.stringify({ read, refused: refused > 1000 }))`,
    )
    await Bun.sleep(1_000)
    for (let round = 0; round < 3; round++) {
      const carrier = server.carriers.at(-1)
      carrier?.kill('SIGKILL')
      await until(() => server.carriers.at(-1) !== carrier, 'another carrier')
      expect(await server.run('echo on')).toBe('on\n')
    }
    expect(JSON.parse(await flood)).toEqual({ read: 0, refused: true })
  }, 60_000)

  test('gets no byte of berth by a socket in the place of that one', async () => {
    await using server = await start()
    const impostor = script(
      server,
      `const { renameSync } = require('node:fs')
      renameSync(path, path + '.kept')
      let opened = 0, read = 0
      Bun.listen({ unix: path, socket: { open() { opened++ }, data(_, bytes) { read += bytes.length } } })
      while (opened < 3) await Bun.sleep(10)
      renameSync(path + '.kept', path)
      console.log(JSON.stringify({ read }))
      process.exit(0)`,
    )
    await until(
      () => existsSync(`${server.socket}.kept`) && existsSync(server.socket),
      'the sockets are exchanged',
    )
    server.carriers.at(-1)?.kill('SIGKILL')
    expect(JSON.parse(await impostor)).toEqual({ read: 0 })
    expect(await server.run('echo on')).toBe('on\n')
  }, 60_000)

  test('is adopted by sandboxd when its parent ends, and reaped', async () => {
    await using server = await start()
    await server.run('for n in 1 2 3 4 5; do (sleep 0.1 &); done')
    expect(
      await server.run(
        '(sleep 60 & echo $!) >pid; sleep 0.3; ps -o ppid= -p $(cat pid); ps -eo stat= | grep -c Z',
      ),
    ).toMatch(/^\s*1\n0\n$/)
  }, 60_000)
})
