import {
  ComputeError,
  type DialedConnection,
  type DialHandlers,
  type ExecCommand,
  type Execution,
  type FaultInjection,
  type Limits,
  type LoopbackHost,
  type Sandbox,
  type TerminalCommand,
  type TerminalExecution,
} from '../driver.ts'
import { type KeepAlive, SandboxdClient } from '../sandboxd/client.ts'
import type { SandboxdCommand } from '../sandboxd/client-execution.ts'
import type { SandboxdConfiguration } from '../sandboxd/protocol.ts'
import type { Transport } from '../sandboxd/transport.ts'
import { GRACE_MS } from '../terminate.ts'
import { dialThrough } from './dial.ts'
import { readAddresses } from './shapes.ts'

/** Milliseconds beyond the grace of its commands in which sandboxd has to end. */
const STOP_MARGIN_MS = 2_000

/** The options of `RemoteSandbox.start`. */
export interface RemoteStart {
  /** The way to a sandboxd that was started with `--stdio`; belongs to the sandbox from here on. */
  transport: Transport
  /** How a peer is noticed that is gone; null if the transport reports it. */
  keepAlive: KeepAlive | null
  configuration: Omit<SandboxdConfiguration, 'silenceMs'>
  /** Absolute path of the directory of tools as commands see it. */
  tools: string
  /** The network that the driver has given the sandbox. */
  network: Pick<Sandbox, 'network' | 'forward' | 'outboundControl'>
  limits: Limits
  /** The mechanism that enforces the memory limit. */
  memoryEnforcedBy: string
  /** Removes the sandbox with all that runs in it, whether sandboxd responds or not; resolves when it is gone. */
  remove(): Promise<void>
  /** Makes the storage count as full, or by its limit again. */
  fillStorage(full: boolean): Promise<void>
}

/**
 * A server that is reached only by a stream of bytes to its sandboxd: in a container, or on another machine. It looks
 * at no process and no socket of this machine; what it has to know, sandboxd says, and a command may have taken that
 * over. So nothing that sandboxd says is trusted beyond its own server.
 */
export class RemoteSandbox implements Sandbox {
  readonly home: string
  readonly tools: string
  readonly exited: Promise<{ reason: string }>
  readonly faultInjection: FaultInjection
  readonly #client: SandboxdClient
  readonly #network: RemoteStart['network']
  #stopping: Promise<void> | null = null

  /** Configures sandboxd; resolves when it accepts commands. Throws `ComputeError`, after everything is removed. */
  static async start(start: RemoteStart): Promise<RemoteSandbox> {
    const { transport, keepAlive, configuration, remove } = start
    try {
      const client = await SandboxdClient.open(transport, keepAlive)
      await client.configure({ ...configuration, silenceMs: keepAlive?.silenceMs ?? null })
      return new RemoteSandbox(client, start)
    } catch (error) {
      transport.terminate()
      await remove()
      throw error
    }
  }

  private constructor(client: SandboxdClient, start: RemoteStart) {
    this.#client = client
    this.home = start.configuration.workspace
    this.tools = start.tools
    this.#network = start.network
    this.exited = this.#waitForExit(start.remove)
    this.faultInjection = new RemoteFaultInjection(client, start)
  }

  get network(): Sandbox['network'] {
    return this.#network.network
  }

  get outboundControl(): Sandbox['outboundControl'] {
    return this.#network.outboundControl
  }

  forward(port: number): void {
    this.#network.forward(port)
  }

  get ending(): boolean {
    return this.#stopping !== null || this.#client.over
  }

  /** Whether commands run in it. Processes that have outlived theirs are not seen. */
  get occupied(): boolean {
    return this.#client.busy > 0
  }

  exec(command: ExecCommand): Execution {
    return this.#execute(command)
  }

  terminal({ size, onOutput, ...command }: TerminalCommand): TerminalExecution {
    return this.#execute({ ...command, terminal: size, onOutput: (_, data) => onOutput(data) })
  }

  #execute(command: SandboxdCommand): TerminalExecution {
    if (this.#stopping !== null) throw new ComputeError('The server is being stopped.')
    const execution = this.#client.exec(command)
    return {
      exit: execution.exit,
      cancel: (graceMs) => execution.cancel(graceMs),
      listening: () => (execution.over ? Promise.resolve([]) : this.#listening(execution.id)),
      started: execution.started,
      get unread() {
        return execution.unread
      },
      write: (data) => execution.type(data),
      hangUp: () => execution.hangUp(),
      resize: (size) => execution.resize(size),
    }
  }

  /** A lie can only lead to the server's own ports: its addresses are dialed inside. */
  async #listening(execution: number): ReturnType<Execution['listening']> {
    try {
      const call = this.#client.call('listening', { execution })
      call.stream.end()
      return readAddresses(await call.result)
    } catch {
      return null
    }
  }

  async dial(port: number, host: LoopbackHost, handlers: DialHandlers): Promise<DialedConnection> {
    if (this.#stopping !== null) throw new ComputeError('The server is being stopped.')
    return dialThrough(this.#client, port, host, handlers)
  }

  async pause(): Promise<() => void> {
    const call = this.#client.call('pause', {})
    await call.result
    return () => call.stream.end()
  }

  /** Ends everything that commands have started. Writes the reason to the standard error of running commands. */
  async endProcesses(reason: string): Promise<void> {
    for (const execution of this.#client.executions) execution.note(reason)
    const call = this.#client.call('kill', {})
    call.stream.end()
    await call.result
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    this.#client.shutdown()
    const timer = setTimeout(() => this.#client.close('It was stopped.'), GRACE_MS + STOP_MARGIN_MS)
    await this.exited
    clearTimeout(timer)
  }

  async #waitForExit(remove: () => Promise<void>): Promise<{ reason: string }> {
    const reason = await this.#client.closed
    await remove()
    return { reason: this.#stopping === null ? reason : 'It was stopped.' }
  }
}

/** Causes faults in a sandbox through its sandboxd. */
class RemoteFaultInjection implements FaultInjection {
  readonly memory: FaultInjection['memory']
  readonly storage: FaultInjection['storage']
  readonly #client: SandboxdClient
  readonly #start: RemoteStart
  #thaw: (() => void) | null = null

  constructor(client: SandboxdClient, start: RemoteStart) {
    this.#client = client
    this.#start = start
    this.memory = { limit: start.limits.memoryBytes, enforcedBy: start.memoryEnforcedBy }
    this.storage = { limit: start.limits.storageBytes }
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

  fillStorage(full: boolean): Promise<void> {
    return this.#start.fillStorage(full)
  }
}
