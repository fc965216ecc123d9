import { randomBytes } from 'node:crypto'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ResumableTransport } from '../../src/compute/engine/resumable.ts'
import { SANDBOXD_ENVIRONMENT } from '../../src/compute/local/isolation.ts'
import { CARRIER_COMMAND, LISTEN, SANDBOXD_COMMAND } from '../../src/compute/processes.ts'
import { SandboxdClient } from '../../src/compute/sandboxd/client.ts'
import { type SandboxdConfiguration, UNCONFINED } from '../../src/compute/sandboxd/protocol.ts'
import { KEY_BYTES, type StreamTimes } from '../../src/compute/sandboxd/resumable.ts'
import { type FrameTransport, PipeTransport } from '../../src/compute/sandboxd/transport.ts'
import { SELF, TEST_PATH } from './bench.ts'

/** The options of `ListeningServer.start`. */
interface ListeningServerOptions extends Partial<StreamTimes> {
  /** Returns the command that starts sandboxd, such as in namespaces of its own. @param folder of the socket and the workspace */
  wrap?(argv: string[], folder: string): string[]
  /** Returns the command that starts a carrier, such as in the namespaces of that process. */
  enter?(argv: string[], sandboxd: number): string[]
  /** See `SandboxdClient.open`. */
  overdueMs?: number
  /** Wraps each carrier, such as to lose bytes. */
  carry?(transport: FrameTransport): FrameTransport
}

/** A sandboxd that listens, and berth's end of a stream to it whose carriers are processes. */
export class ListeningServer implements AsyncDisposable {
  static async start(options: ListeningServerOptions = {}): Promise<ListeningServer> {
    const server = new ListeningServer(options)
    server.client = await SandboxdClient.open(server.transport, null, options.overdueMs)
    server.version = await server.client.configure(server.configuration)
    return server
  }

  readonly folder = mkdtempSync(join(tmpdir(), 'berth-listening-'))
  readonly workspace = join(this.folder, 'workspace')
  readonly socket = join(this.folder, 'socket')
  readonly key = randomBytes(KEY_BYTES)
  readonly marker = randomBytes(12).toString('hex')
  readonly carriers: Bun.Subprocess[] = []
  /** What was said of the server at each attempt of berth to reach it. */
  readonly attempts: (string | null)[] = []
  readonly sandboxd: Bun.Subprocess
  readonly transport: ResumableTransport
  client!: SandboxdClient
  version = ''
  // Held as an instance holds its own: `doctor --leaks --fix` of another test ends what has no instance.
  readonly #lock = openSync(join(this.folder, 'lock'), 'w')

  private constructor(private readonly options: ListeningServerOptions) {
    mkdirSync(this.workspace)
    const { wrap = (argv) => argv, leaseMs = 60_000, pingMs = 5_000, silenceMs = 15_000 } = options
    this.sandboxd = Bun.spawn(
      wrap([...SELF.argv, SANDBOXD_COMMAND, LISTEN, this.socket, this.marker], this.folder),
      {
        env: { ...SANDBOXD_ENVIRONMENT, PATH: TEST_PATH },
        stdio: ['ignore', 'inherit', 'inherit'],
        killSignal: 'SIGKILL',
      },
    )
    this.transport = new ResumableTransport({
      connect: () => {
        this.attempts.push(this.transport.interruption)
        return this.connect()
      },
      key: this.key,
      ...{ leaseMs, pingMs, silenceMs },
    })
  }

  get configuration(): SandboxdConfiguration {
    return {
      workspace: this.workspace,
      env: { PATH: TEST_PATH, HOME: this.workspace },
      marker: this.marker,
      confinement: UNCONFINED,
      watch: {},
      rlimits: {},
      receivesTerminals: false,
      sendsSockets: false,
      silenceMs: null,
    }
  }

  /** Starts a carrier. */
  async connect(): Promise<FrameTransport> {
    const { enter = (argv) => argv, carry = (transport) => transport } = this.options
    const carrier = Bun.spawn(enter([...SELF.argv, CARRIER_COMMAND, this.socket], this.sandboxd.pid), {
      env: { PATH: TEST_PATH },
      stdio: ['pipe', 'pipe', 'inherit'],
      killSignal: 'SIGKILL',
    })
    this.carriers.push(carrier)
    return carry(new PipeTransport(carrier.stdout, carrier.stdin))
  }

  /** Runs a command and returns what it printed. */
  async run(command: string, stdin?: Uint8Array): Promise<string> {
    const pieces: Uint8Array[] = []
    const onOutput = (_: string, data: Uint8Array) => void pieces.push(data)
    const { exit } = this.client.exec({ command, timeoutMs: 60_000, onOutput, ...(stdin && { stdin }) })
    await exit
    return Buffer.concat(pieces).toString()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client?.shutdown()
    this.transport.terminate()
    this.sandboxd.kill()
    await this.sandboxd.exited
    for (const carrier of this.carriers) {
      carrier.kill()
      await carrier.exited
    }
    closeSync(this.#lock)
    rmSync(this.folder, { recursive: true })
  }
}
