import { VERSION } from '../../runtime/version.ts'
import { within } from '../../runtime/wait.ts'
import type { Limits } from '../driver.ts'
import type { ForwardTarget } from '../local/network/forward.ts'
import type { AcceptAtPort, AnsweringPorts } from '../local/network/project-ports.ts'
import {
  type CommandActivity,
  ComputeError,
  type DialedConnection,
  type DialHandlers,
  type FaultInjection,
  type LoopbackHost,
  type Sandbox,
  type ServerConsumption,
} from '../sandbox.ts'
import { type KeepAlive, SandboxdClient } from '../sandboxd/client.ts'
import { CallError, type ClientCall } from '../sandboxd/client-calls.ts'
import type { SandboxdExecution } from '../sandboxd/client-execution.ts'
import type { SandboxdConfiguration } from '../sandboxd/protocol.ts'
import { SandboxBase, SandboxFaults } from '../sandboxd/sandbox-base.ts'
import type { FrameTransport } from '../sandboxd/transport.ts'
import { acceptAtPorts, acceptFor } from './accept.ts'
import { dialThrough } from './called-connection.ts'
import { decodeActivity, readBoolean, readConsumption } from './read-response.ts'

/** Milliseconds for a connection to an address outside, beyond which something drops what is sent there. */
const REACH_MS = 1_000

/** Milliseconds beyond the grace of its commands in which sandboxd has to end. */
const STOP_MARGIN_MS = 2_000

/** The options of `RemoteSandbox.start`. */
interface RemoteStart {
  /** The way to a sandboxd that was started with `--stdio` or `--listen`; belongs to the sandbox from here on. */
  transport: FrameTransport
  /** How a peer is noticed that is gone; null if the transport reports it, as one that resumes does. */
  keepAlive: KeepAlive | null
  configuration: Omit<SandboxdConfiguration, 'silenceMs'>
  /** Absolute path of the directory of tools as commands see it. */
  tools: string
  /** Absolute path of the directory of caches as commands see it. */
  caches: string
  /** The network that the driver has given the sandbox. */
  network: Pick<Sandbox, 'network' | 'outboundControl'>
  limits: Limits
  /** The mechanism that enforces the memory limit. */
  memoryEnforcedBy: string
  /** Returns why the sandbox has ended that nobody stopped; null if only the connection says it. */
  whyEnded?(): Promise<string | null>
  /** Removes the sandbox with all that runs in it, whether sandboxd responds or not; resolves when it is gone. */
  remove(): Promise<void>
}

/**
 * A server that is reached only by a stream of bytes to its sandboxd: in a container, or on another machine. It looks
 * at no process and no socket of this machine; what it has to know, sandboxd says, and a command may have taken that
 * over. So nothing that sandboxd says is trusted beyond its own server.
 */
export class RemoteSandbox extends SandboxBase implements Sandbox {
  readonly hasImage = true
  readonly home: string
  readonly tools: string
  readonly caches: string
  readonly exited: Promise<{ reason: string }>
  readonly faultInjection: FaultInjection
  readonly #network: RemoteStart['network']
  readonly #forwarded = new Set<number>()

  /** Configures sandboxd; resolves when it accepts commands. Throws `ComputeError`, after everything is removed. */
  static async start(start: RemoteStart): Promise<RemoteSandbox> {
    const { transport, keepAlive, configuration, remove } = start
    try {
      const client = await SandboxdClient.open(transport, keepAlive)
      const version = await client.configure({ ...configuration, silenceMs: keepAlive?.silenceMs ?? null })
      checkVersion(version)
      return new RemoteSandbox(client, start)
    } catch (error) {
      transport.terminate()
      await remove()
      throw error
    }
  }

  private constructor(client: SandboxdClient, start: RemoteStart) {
    super(client, STOP_MARGIN_MS)
    this.home = start.configuration.workspace
    this.tools = start.tools
    this.caches = start.caches
    this.#network = start.network
    this.exited = this.#waitForExit(start)
    this.faultInjection = new RemoteFaultInjection(client, start, (full) => this.fillStorage(full))
  }

  get network(): Sandbox['network'] {
    return this.#network.network
  }

  get outboundControl(): Sandbox['outboundControl'] {
    return this.#network.outboundControl
  }

  /**
   * Makes something that berth offers reachable at a port of the server's own loopback. Does nothing if it is already, or if
   * the network is shared.
   *
   * @param target that port of this machine's loopback by default; or what takes the connections
   * @param failed called if a program of the server has the port
   */
  forward(
    port: number,
    target: ForwardTarget | AcceptAtPort = { port },
    failed: (error: unknown) => void = () => {},
  ): void {
    if (this.network === 'shared' || this.#forwarded.has(port)) return
    this.#forwarded.add(port)
    void acceptFor(this.sandboxd, port, target).catch((error) => {
      this.#forwarded.delete(port)
      if (!this.ending) failed(error)
    })
  }

  /**
   * Passes on the connections of programs to ports of projects on which no program of the server listens. Does nothing if the
   * network is shared. Must be called once at most.
   */
  acceptAtProjectPorts(accept: AcceptAtPort, ports: AnsweringPorts): void {
    if (this.network === 'shared') return
    // It ends with the sandbox.
    acceptAtPorts(this.sandboxd, ports, accept, this.exited).catch(() => {})
  }

  /**
   * Reports whether the server can connect to an address within a second.
   *
   * @throws ComputeError if it cannot be asked
   */
  async reaches(host: string, port: number): Promise<boolean> {
    const call = this.call('dial', { port, host })
    const connected = call.result.then(
      () => true,
      (error: unknown) => {
        if (error instanceof CallError) return false
        throw error
      },
    )
    try {
      return await within(REACH_MS, connected, false)
    } finally {
      call.drop()
    }
  }

  /** Its files are not those of this machine. */
  async toolchains(): Promise<null> {
    return null
  }

  /** Reports whether anything but sandboxd runs in it. */
  async isOccupied(): Promise<boolean> {
    if (this.sandboxd.busy > 0) return true
    const call = this.call('occupied', {})
    call.stream.end()
    return readBoolean('occupied', await call.result)
  }

  /** Whether calls are under way, such as a file that is read. */
  get isCalled(): boolean {
    return this.sandboxd.calls > 0
  }

  /** Calls a service of its sandboxd, such as those of `RemoteWorkspace`. Throws `ComputeError` when it is gone. */
  call(...call: Parameters<SandboxdClient['call']>): ClientCall {
    return this.sandboxd.call(...call)
  }

  /** A lie can only lead to the server's own ports: its addresses are dialed inside. */
  protected async activity({ id: execution }: SandboxdExecution): Promise<CommandActivity> {
    try {
      const call = this.call('activity', { execution })
      call.stream.end()
      return decodeActivity(await call.result)
    } catch {
      // The sandbox is gone or answers nonsense: nothing is known of its sockets.
      return { listening: null, cpuMs: 0 }
    }
  }

  async dial(port: number, host: LoopbackHost, handlers: DialHandlers): Promise<DialedConnection> {
    if (this.isStopping) throw new ComputeError('The server is being stopped.')
    return dialThrough(this.sandboxd, port, host, handlers)
  }

  async consumption(): Promise<ServerConsumption> {
    const call = this.call('consumption', {})
    call.stream.end()
    return readConsumption(await call.result)
  }

  async pause(): Promise<() => void> {
    const release = this.sandboxd.hold()
    try {
      const call = this.call('pause', {})
      await call.result
      return () => {
        call.stream.end()
        release()
      }
    } catch (error) {
      release()
      throw error
    }
  }

  protected async killStarted(): Promise<void> {
    const call = this.call('kill', {})
    call.stream.end()
    await call.result
  }

  async #waitForExit({ whyEnded, remove }: RemoteStart): Promise<{ reason: string }> {
    const reason = await this.sandboxd.closed
    const why = this.isStopping ? null : await whyEnded?.()
    await remove()
    return { reason: this.isStopping ? 'It was stopped.' : (why ?? reason) }
  }
}

/** @throws ComputeError if sandboxd's version is another one than berth's, whose frames may differ */
function checkVersion(version: string): void {
  if (version === VERSION) return
  throw new ComputeError(
    `The server's image has sandboxd of berth ${version || 'of an unknown version'}, but this is berth ${VERSION}. ` +
      'Prepare the image with this version of berth.',
  )
}

/** Causes faults in a sandbox through its sandboxd. */
class RemoteFaultInjection extends SandboxFaults {
  readonly #client: SandboxdClient
  readonly #start: RemoteStart
  #thaw: (() => void) | null = null

  constructor(client: SandboxdClient, start: RemoteStart, fillStorage: FaultInjection['fillStorage']) {
    super(start, fillStorage)
    this.#client = client
    this.#start = start
  }

  crash(): void {
    void this.#start.remove()
  }

  async freeze(): Promise<void> {
    const call = this.#client.call('pause', { all: true })
    this.#thaw?.()
    this.#thaw = () => call.stream.end()
    await call.result
  }

  thaw(): void {
    this.#thaw?.()
    this.#thaw = null
  }
}
