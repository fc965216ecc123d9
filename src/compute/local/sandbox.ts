import { messageOf } from '../../runtime/error-info.ts'
import { processes } from '../../system/processes.ts'
import type { Limits } from '../driver.ts'
import type { LimitGroup } from '../limits/limiter.ts'
import { measureConsumption } from '../process-table.ts'
import {
  commandMarker,
  findDescendants,
  isStopped,
  killAll,
  killPresent,
  type ProcessScanner,
  rememberProcesses,
  signal,
  stopAll,
} from '../processes.ts'
import {
  type CommandActivity,
  ComputeError,
  type DialedConnection,
  type DialHandlers,
  type FaultInjection,
  type LoopbackHost,
  type OutboundControl,
  type Sandbox,
  type ServerConsumption,
} from '../sandbox.ts'
import { SandboxdClient } from '../sandboxd/client.ts'
import type { SandboxdCommand, SandboxdExecution } from '../sandboxd/client-execution.ts'
import { type FaultLimits, SandboxBase, SandboxFaults } from '../sandboxd/sandbox-base.ts'
import { TerminalSender } from '../sandboxd/terminals.ts'
import { SocketTransport } from '../sandboxd/transport.ts'
import { dialLoopback, dialNetwork } from './dial.ts'
import { type Launch, LaunchRefused, type LocalDriverOptions, type LocalIsolation } from './isolation.ts'
import type { NetworkLoader, NetworkSetup } from './network/network-setup.ts'
import type { OutboundRelay, RelayedOutbound } from './network/outbound/relay.ts'
import { PROXY_ENVIRONMENT } from './network/rules.ts'
import type { ServerNetwork } from './network/server-network.ts'
import { readActivity } from './ports.ts'
import { processesIn, type RunningSandboxes } from './running.ts'
import { collectErrors, type Spawned, spawnWithSocket } from './spawn.ts'
import type { ToolName } from './toolchain-kinds.ts'
import type { Toolchain } from './toolchains.ts'

/** Milliseconds in which sandboxd has to be ready. */
const READY_MS = 15_000

/** The first exit status of a process that was ended by a signal, so not by what it could not do. */
const SIGNALLED = 128

/** Milliseconds beyond the grace of its commands in which sandboxd has to end. */
const STOP_MARGIN_MS = 500

/** Milliseconds to wait for sandboxd's confirmation that no command is about to begin, before pausing anyway. */
const PAUSE_PATIENCE_MS = 250

/** Milliseconds between two looks whether sandboxd was stopped. */
const STOPPED_MS = 500

/** Milliseconds between two looks for processes while the system lets none be read, and the most looks. */
const LOOK_AGAIN_MS = 100
/** @bound program */
const MOST_LOOKS = 100

/** The options of `LocalSandbox.start`. */
export interface SandboxStart {
  options: Pick<
    LocalDriverOptions,
    'baseUrl' | 'environment' | 'provide' | 'path' | 'outbound' | 'machinePorts' | 'logger'
  >
  /** The server's id. */
  id: string
  launch: Launch
  /** First 24 hex digits of its processes' markers. */
  marker: string
  group: LimitGroup
  /** Notes which sandboxes of a driver run. */
  running: RunningSandboxes
  isolation: Pick<LocalIsolation, 'namespaces' | 'keepsGroups'>
  /** Shared by the sandboxes of a driver. */
  scanner: ProcessScanner
  limits: Limits
  /** The mechanism that enforces the memory limit. */
  memoryEnforcedBy: string
  /** Receives the sandbox's own network; null if it shares the machine's. */
  networks: NetworkLoader | null
  /** Connects the own network with the outside; null if there is none. */
  relay: OutboundRelay | null
}

/** A server's processes on this machine: sandboxd in its isolation, and everything it started. */
export class LocalSandbox extends SandboxBase implements Sandbox {
  readonly faultInjection: FaultInjection
  readonly #process: Bun.Subprocess<'ignore', 'ignore', 'pipe'>
  readonly #start: SandboxStart
  readonly #exited: Promise<{ reason: string }>
  /** Opens terminals for a sandboxd that cannot; null for one that can. */
  readonly #terminals: TerminalSender | null
  /** Sets up its own network; null if it has none. */
  readonly #networkSetup: NetworkSetup | null
  /** What leaves its own network; null if it has none. */
  #relayed: RelayedOutbound | null = null
  /** The sandbox's own processes, which run before any command. */
  #own: ReadonlySet<number> = new Set()
  /** Returns those of them that live, with the one that berth started. */
  #ownAlive: () => number[] = () => []
  /** Whether all that is left of it can be found without looking at other processes. */
  #isTraced = false
  #looks: Timer | null = null
  /** Resolves when the number of its terminals is limited; null before that begins. */
  #terminalsLimited: Promise<void> | null = null

  /** Starts sandboxd; resolves when it accepts commands. Throws `ComputeError` with the start's error output. */
  static async start(start: SandboxStart): Promise<LocalSandbox> {
    const { id, launch, group, running } = start
    running.begin(id)
    const spawned = spawnWithSocket({ ...launch, argv: [...group.enter, ...launch.argv] })
    const sandboxd = await SandboxdClient.open(new SocketTransport(spawned.socket))
    const sandbox = new LocalSandbox(spawned, sandboxd, start)
    await sandbox.#configure()
    return sandbox
  }

  private constructor(spawned: Spawned, sandboxd: SandboxdClient, start: SandboxStart) {
    super(sandboxd, STOP_MARGIN_MS)
    const { process, descriptors } = spawned
    this.#process = process
    this.#start = start
    this.#networkSetup = start.networks?.begin(spawned) ?? null
    const sends = descriptors !== null && this.#networkSetup === null
    this.#terminals = sends ? new TerminalSender(descriptors) : null
    this.#exited = this.#waitForExit()
    this.faultInjection = new LocalFaultInjection({
      pid: process.pid,
      started: () => this.#started(),
      drained: () => sandboxd.drained(),
      limits: start.limits,
      memoryEnforcedBy: start.memoryEnforcedBy,
      fillStorage: (full) => this.fillStorage(full),
    })
  }

  get exited(): Promise<{ reason: string }> {
    return this.#exited
  }

  get #network(): ServerNetwork | null {
    return this.#networkSetup?.network ?? null
  }

  get network(): 'own' | 'shared' {
    return this.#network === null ? 'shared' : 'own'
  }

  get home(): string {
    return this.#start.launch.workspace
  }

  get tools(): string {
    return this.#start.launch.tools
  }

  get caches(): string {
    return this.#start.launch.caches
  }

  toolchains(tool: ToolName): Promise<readonly Toolchain[]> {
    return this.#start.launch.toolchains(tool)
  }

  get refusesUnixSockets(): boolean {
    return this.#start.launch.confinement.unixSockets
  }

  get outboundControl(): OutboundControl | null {
    return this.#relayed
  }

  /** How connections leave its own network: they are redirected to berth, or go by a proxy; null if it shares one. */
  get leaves(): 'redirected' | 'proxy' | null {
    if (this.#network === null) return null
    return this.#network.unredirected === null ? 'redirected' : 'proxy'
  }

  /** Why connections are not redirected, a sentence; null if they are, or if there is no own network. */
  get unredirected(): string | null {
    return this.#network?.unredirected ?? null
  }

  /** Whether its processes have a user of the kernel's own. */
  get hasOwnUser(): boolean {
    return this.#start.launch.user !== undefined
  }

  /** Whether anything but sandboxd runs in it. */
  isOccupied(): boolean {
    return this.sandboxd.busy > 0 || this.#started().length > 0
  }

  /** Pid of the process that berth started for it. */
  get pid(): number {
    return this.#process.pid
  }

  protected override begin(command: SandboxdCommand): SandboxdExecution {
    if (command.terminal !== undefined && !this.sandboxd.over) this.#terminals?.send()
    const env = this.leaves === 'proxy' ? { ...PROXY_ENVIRONMENT, ...command.env } : command.env
    const execution = super.begin(env === undefined ? command : { ...command, env })
    this.#lookAtSandboxd()
    return execution
  }

  protected activity({ id }: SandboxdExecution): Promise<CommandActivity> {
    return readActivity(this.#process.pid, commandMarker(this.#start.marker, id), this.#networkOf)
  }

  protected killStarted(): Promise<void> {
    return killPresent(() => this.#started())
  }

  /**
   * Ends the sandbox if sandboxd was stopped, as a command can without a PID namespace: nobody would then hold the
   * commands to their time and their limits. Looks while anything runs.
   */
  #lookAtSandboxd(): void {
    this.#looks ??= setInterval(() => {
      if ([this.#process.pid, ...this.#own].some(isStopped)) {
        this.sandboxd.close('sandboxd was stopped, so nothing held the server to its limits.')
      } else if (!this.isOccupied()) this.#rest()
    }, STOPPED_MS).unref()
  }

  #rest(): void {
    if (this.#looks !== null) clearInterval(this.#looks)
    this.#looks = null
  }

  #started(): number[] {
    return findDescendants(this.#process.pid).filter((pid) => !this.#own.has(pid))
  }

  async pause(): Promise<() => void> {
    const release = this.sandboxd.hold()
    await Promise.race([this.sandboxd.drained(), Bun.sleep(PAUSE_PATIENCE_MS)])
    const paused = stopAll(() => this.#started().filter((pid) => !isStopped(pid)))
    return () => {
      for (const pid of paused) signal(pid, 'SIGCONT')
      release()
    }
  }

  async consumption(): Promise<ServerConsumption> {
    const own = [this.#process.pid, ...this.#own]
    const measured = measureConsumption(this.#started(), own)
    const { cpuMs, memoryBytes, threads } = this.#start.group.usage()
    const ownThreads =
      threads === null ? 0 : own.reduce((sum, pid) => sum + (processes.usage(pid)?.threads ?? 0), 0)
    return {
      at: measured.at,
      cpuMs: cpuMs ?? measured.cpuMs,
      memoryBytes: memoryBytes ?? measured.memoryBytes,
      processes: threads === null ? measured.processes : Math.max(0, threads - ownThreads),
    }
  }

  forward(port: number): void {
    try {
      this.#network?.forward(port, { port })
    } catch (error) {
      throw new ComputeError(`The server cannot reach berth at port ${port}: ${messageOf(error)}`, {
        cause: error,
      })
    }
  }

  async dial(port: number, host: LoopbackHost, handlers: DialHandlers): Promise<DialedConnection> {
    // Another program may have the port by now.
    if (this.ending) throw new ComputeError('The server is not running any more; start it again.')
    const network = this.#network
    return network === null ? dialLoopback(port, host, handlers) : dialNetwork(network, port, host, handlers)
  }

  async #configure(): Promise<void> {
    const { id, launch, marker, group, options } = this.#start
    const baseUrl = options.baseUrl(this.#networkSetup === null ? 'shared' : 'own')
    const errors = collectErrors(this.#process.stderr)
    const timer = setTimeout(() => this.sandboxd.close('It was not ready in time.'), READY_MS)
    try {
      await this.sandboxd.configure({
        workspace: launch.workspace,
        env: {
          ...launch.commandEnv,
          ...group.environment,
          ...options.environment(id, this),
          ...(baseUrl === null ? {} : { BERTH_BASE_URL: baseUrl }),
        },
        marker,
        confinement: launch.confinement,
        receivesTerminals: this.#terminals !== null,
        sendsSockets: this.#networkSetup !== null,
        silenceMs: null,
        ...group.sandboxd,
      })
      const own = findDescendants(this.#process.pid)
      this.#own = new Set(own)
      const [first = this.#process.pid] = own
      this.#attachWorkspace(first)
      await this.#openNetwork()
      this.#trace()
      // No command waits for it.
      this.#terminalsLimited = launch.limitTerminals?.(first) ?? null
    } catch (error) {
      this.sandboxd.close('It did not start.')
      await this.#exited
      const said = await errors.text
      if (error instanceof LaunchRefused) throw error
      const reason = said === '' ? messageOf(error) : `The sandbox did not start: ${said}`
      const status = this.#process.exitCode ?? SIGNALLED
      throw status > 0 && status < SIGNALLED ? new LaunchRefused(reason) : new ComputeError(reason)
    } finally {
      clearTimeout(timer)
      errors.stop()
    }
  }

  /** Notes what leads to all of its processes, once it is complete. */
  #trace(): void {
    const { id, group, isolation, running } = this.#start
    const { namespaces, keepsGroups } = isolation
    const pids = [this.#process.pid, ...this.#own]
    this.#ownAlive = rememberProcesses(pids)
    this.#isTraced = namespaces || (keepsGroups && group.directories.length > 0)
    if (this.#isTraced) running.ready(id, { pids: namespaces ? pids : [], groups: group.directories })
  }

  #attachWorkspace(pid: number): void {
    try {
      this.#start.launch.user?.attachWorkspace(pid)
    } catch (error) {
      throw new LaunchRefused(`The workspace cannot be mounted: ${messageOf(error)}`, { cause: error })
    }
  }

  /** Pid of a process in whose network the server's ports are: the first of its own, or berth. */
  get #networkOf(): number {
    const [first = process.pid] = this.#network === null ? [] : this.#own
    return first
  }

  async #openNetwork(): Promise<void> {
    const { id, relay, options } = this.#start
    const network = await this.#networkSetup?.finish()
    if (network === undefined || relay === null) return
    await options.provide(id, network)
    const sockets = network.outboundSockets(options.machinePorts)
    this.#relayed = await relay.open(id, sockets, options.outbound, network.socketsOfBerth)
    // The sandbox may have ended meanwhile.
    if (this.sandboxd.over) await this.#relayed.close()
  }

  /**
   * Returns the processes that carry the sandbox's marker, and their descendants. Looks again while no file can be opened;
   * if that lasts, finds none: the next start of berth looks for them.
   */
  async #findMarked(): Promise<number[]> {
    const { marker, scanner } = this.#start
    const family = { roots: [], sessions: [], marker, except: [process.pid] }
    for (let look = 1; ; look += 1) {
      try {
        return (await scanner.scan())(family)
      } catch {
        if (look === MOST_LOOKS) return []
        await Bun.sleep(LOOK_AGAIN_MS)
      }
    }
  }

  /** Waits for the sandbox's end, whatever causes it, then removes everything that is left. */
  async #waitForExit(): Promise<{ reason: string }> {
    const ended = this.#process.exited.then((code) => `Its process ended with status ${code}.`)
    const why = await Promise.race([this.sandboxd.closed, ended])
    this.sandboxd.close(why)
    this.#rest()
    this.#terminals?.close()
    const closed = this.#networkSetup?.stop()
    void this.#relayed?.close()
    const inside = rememberProcesses(findDescendants(this.#process.pid))
    signal(this.#process.pid, 'SIGKILL')
    await Promise.all([this.#process.exited, closed, this.#terminalsLimited])
    const { id, group, launch, running } = this.#start
    // In a PID namespace too: bwrap ends before the first process inside, which ends when all others have.
    const find = (): number[] => [
      ...new Set([...this.#ownAlive(), ...inside(), ...processesIn(group.directories)]),
    ]
    const search = async (): Promise<number[]> => [...new Set([...(await this.#findMarked()), ...find()])]
    if (await killAll(this.#isTraced ? find : search)) running.end(id)
    launch.user?.release()
    const outOfMemory = group.memoryKills() > 0 && !this.isStopping
    await group.close()
    if (this.isStopping) return { reason: 'It was stopped.' }
    return { reason: outOfMemory ? `${why} It had run out of memory.` : why }
  }
}

/** The options of a `LocalFaultInjection`. */
interface LocalFaultOptions extends FaultLimits {
  /** The process that the sandbox ends with. */
  pid: number
  /** Returns all that commands have started. */
  started(): number[]
  /** Resolves when sandboxd has acted on everything it was sent before. */
  drained(): Promise<void>
  fillStorage: FaultInjection['fillStorage']
}

/** Causes faults in a sandbox on this machine, by signals and through its disk watch. */
class LocalFaultInjection extends SandboxFaults {
  readonly #options: LocalFaultOptions

  constructor(options: LocalFaultOptions) {
    super(options, options.fillStorage)
    this.#options = options
  }

  crash(): void {
    signal(this.#options.pid, 'SIGKILL')
  }

  async freeze(): Promise<void> {
    await this.#options.drained()
    stopAll(this.#options.started)
  }

  thaw(): void {
    for (const pid of this.#options.started()) signal(pid, 'SIGCONT')
  }
}
