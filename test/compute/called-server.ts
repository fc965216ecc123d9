import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { SANDBOXD_ENVIRONMENT } from '../../src/compute/local/isolation.ts'
import { spawnWithSocket } from '../../src/compute/local/spawn.ts'
import { type KeepAlive, SandboxdClient } from '../../src/compute/sandboxd/client.ts'
import { type SandboxdConfiguration, UNCONFINED } from '../../src/compute/sandboxd/protocol.ts'
import {
  type FrameTransport,
  type PipeSink,
  PipeTransport,
  SocketTransport,
  type TransportHandlers,
} from '../../src/compute/sandboxd/transport.ts'
import { SELF, TEST_PATH } from './bench.ts'

/** What carries the frames between berth and a sandboxd of the tests. */
export const CARRIERS = ['pipes', 'a Unix socket', 'TCP'] as const
export type Carrier = (typeof CARRIERS)[number]

/** The options of `CalledServer.start`. */
interface CalledServerOptions {
  carrier?: Carrier
  keepAlive?: KeepAlive
  rlimits?: SandboxdConfiguration['rlimits']
}

/** A sandboxd without isolation, a process of its own, and a client that reaches it by calls alone. */
export class CalledServer implements AsyncDisposable {
  readonly #lock: number

  /** @param folder a new data directory: held, since a sandboxd that belongs to none is what a killed berth leaves */
  static async start(
    folder: string,
    workspace: string,
    { carrier = 'pipes', keepAlive, rlimits = {} }: CalledServerOptions = {},
  ): Promise<CalledServer> {
    const lock = openSync(join(folder, 'lock'), 'w')
    const marker = randomBytes(12).toString('hex')
    const { transport, sandboxd, tcp } = await CARRY[carrier]([...SELF.argv, '__sandboxd'], marker)
    const counted = new CountedTransport(transport)
    const client = await SandboxdClient.open(counted, keepAlive ?? null)
    await client.configure({
      workspace,
      env: { PATH: TEST_PATH },
      marker,
      confinement: UNCONFINED,
      watch: {},
      rlimits,
      receivesTerminals: false,
      sendsSockets: false,
      silenceMs: keepAlive?.silenceMs ?? null,
    })
    return new CalledServer(client, sandboxd, counted, tcp, lock)
  }

  private constructor(
    readonly client: SandboxdClient,
    readonly sandboxd: Bun.Subprocess,
    /** What berth has received. */
    readonly received: { readonly bytes: number },
    /** Over TCP, the two ends between which something may be cut. */
    readonly tcp: TcpRelay | null,
    lock: number,
  ) {
    this.#lock = lock
  }

  get pid(): number {
    return this.sandboxd.pid
  }

  /** The most memory that sandboxd has had, in bytes. */
  get peakMemory(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8')
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) * 1024
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.close('The test is over.')
    this.tcp?.cut()
    await this.sandboxd.exited
    closeSync(this.#lock)
  }
}

interface Carried {
  transport: FrameTransport
  sandboxd: Bun.Subprocess
  tcp: TcpRelay | null
}

const piped = (argv: string[], marker: string) =>
  Bun.spawn([...argv, '--stdio', marker], {
    env: { ...SANDBOXD_ENVIRONMENT },
    stdio: ['pipe', 'pipe', 'inherit'],
    killSignal: 'SIGKILL',
  })

const CARRY: Readonly<Record<Carrier, (argv: string[], marker: string) => Promise<Carried>>> = {
  async pipes(argv, marker) {
    const sandboxd = piped(argv, marker)
    return { transport: new PipeTransport(sandboxd.stdout, sandboxd.stdin), sandboxd, tcp: null }
  },

  async 'a Unix socket'(argv, marker) {
    const { process: sandboxd, socket } = spawnWithSocket({
      argv: [...argv, marker],
      env: SANDBOXD_ENVIRONMENT,
    })
    return { transport: new SocketTransport(socket), sandboxd, tcp: null }
  },

  /** As an engine does that is reached over a network: the bytes pass through another program. */
  async TCP(argv, marker) {
    const sandboxd = piped(argv, marker)
    const tcp = await TcpRelay.open(sandboxd.stdout, sandboxd.stdin)
    return { transport: new PipeTransport(tcp.output, tcp.input), sandboxd, tcp }
  },
}

/** Counts the bytes that come. */
class CountedTransport implements FrameTransport {
  bytes = 0

  constructor(private readonly inner: FrameTransport) {}

  open({ data, ...rest }: TransportHandlers): Promise<void> {
    return this.inner.open({
      ...rest,
      data: (chunk) => {
        this.bytes += chunk.length
        data(chunk)
      },
    })
  }

  write(bytes: Uint8Array): number {
    return this.inner.write(bytes)
  }

  terminate(): void {
    this.inner.terminate()
  }
}

/** A TCP connection whose far end is joined to a process's pipes. */
class TcpRelay {
  static async open(stdout: ReadableStream<Uint8Array>, stdin: Bun.FileSink): Promise<TcpRelay> {
    const server = createServer({ pauseOnConnect: false })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve))
    const near = connect((server.address() as { port: number }).port, '127.0.0.1')
    const far = await accepted
    server.close()
    return new TcpRelay(near, far, stdout, stdin)
  }

  readonly #near: Socket
  readonly #far: Socket
  #isLost = false

  private constructor(near: Socket, far: Socket, stdout: ReadableStream<Uint8Array>, stdin: Bun.FileSink) {
    this.#near = near
    this.#far = far
    for (const socket of [near, far]) socket.on('error', () => {})
    Readable.fromWeb(stdout as never)
      .on('error', () => {})
      .pipe(far)
    far.on('data', (chunk) => {
      far.pause()
      void (async () => {
        await stdin.write(chunk)
        await stdin.flush()
        if (!this.#isLost) far.resume()
      })()
    })
    far.on('close', () => void stdin.end())
  }

  /** What comes from sandboxd. */
  get output(): ReadableStream<Uint8Array> {
    const near = this.#near
    return new ReadableStream({
      start(controller) {
        near.on('data', (chunk) => {
          controller.enqueue(new Uint8Array(chunk))
          if ((controller.desiredSize ?? 0) <= 0) near.pause()
        })
        near.on('close', () => controller.error(new Error('The connection is closed.')))
      },
      pull: () => void near.resume(),
    })
  }

  /** What goes to sandboxd. */
  get input(): PipeSink {
    const near = this.#near
    return {
      write: (bytes) =>
        new Promise((resolve, reject) => {
          near.write(bytes, (error) => (error ? reject(error) : resolve(bytes.length)))
        }),
      flush: () => 0,
      end: () => void near.destroy(),
    }
  }

  /** Cuts the connection, as a machine does that resets it. */
  cut(): void {
    this.#far.destroy()
    this.#near.destroy()
  }

  /** Loses what comes from now on, as a cut wire does. */
  lose(): void {
    this.#isLost = true
    this.#far.pause()
    this.#near.pause()
  }
}
