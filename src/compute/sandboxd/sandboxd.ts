import { closeSync, read, writeSync } from 'node:fs'
import { messageOf } from '../../runtime/error-info.ts'
import { processEnvironment } from '../../runtime/process-environment.ts'
import { VERSION } from '../../runtime/version.ts'
import { loadLibc, loadMemoryMeter } from '../../system/calls.ts'
import { confine } from '../../system/linux/confinement.ts'
import { loadDescriptorCalls } from '../../system/linux/descriptors.ts'
import { processes } from '../../system/processes.ts'
import type { Libc } from '../../system/system.ts'
import { findDescendants, killAll, LISTEN, readChildren, STDIO, terminate } from '../processes.ts'
import type { TerminalSize } from '../sandbox.ts'
import { FrameChannel } from './channel.ts'
import { Command, type CommandContext } from './command.ts'
import { withImageVariables } from './image-variables.ts'
import {
  BLANK_SOCKETS,
  CHUNK,
  DESCRIPTORS_FD,
  decodeJson,
  decodeNumber,
  encodeNumber,
  FRAME,
  isCallFrame,
  MAX_TO_SANDBOXD,
  OOM_SCORE_FD,
  REPORT_READER_FD,
  RULES_SOCKET,
  SANDBOXD_FD,
  type SandboxdConfiguration,
  type SpawnRequest,
} from './protocol.ts'
import type { ServedCalls } from './served-calls.ts'
import { SpawnError } from './start.ts'
import { Terminals } from './terminals.ts'
import { type FrameTransport, PipeTransport, QuietSocketTransport } from './transport.ts'
import { Watchdog } from './watchdog.ts'

/** Most looks for processes that an earlier look has missed. @bound program */
const MOST_LOOKS = 5

/** Orphans that are reaped one by one; endless ones must not hold up everything else. @bound program */
const MOST_REAPED = 64

/** Milliseconds in which commands that a shutdown has ended send their last output and their exit codes. */
const REPORT_MS = 300

/** Milliseconds that services have to free what they hold when berth is gone. */
const CLOSE_MS = 1_000

/**
 * Share of the descriptors that berth may have open for each process of a server. Nobody may send descriptors over a
 * socket while his user has more of them under way than he may have open (unix(7), ETOOMANYREFS). Commands, which may have
 * fewer, cannot keep berth and the sandboxd of other servers from it.
 */
const OPEN_FILES_SHARE = 3 / 4

/** The options of `Sandboxd`. */
interface SandboxdOptions {
  libc: Libc
  /** The connection to berth. */
  channel: FrameChannel
  /** Waits until Bun has the threads that it needs. */
  awaitThreads(): void
  /** Ends sandboxd's process. */
  exit(): Promise<void>
}

/** Executes berth's frames: starts commands, passes their input and output on, and ends them. */
class Sandboxd {
  readonly #options: SandboxdOptions
  readonly #commands = new Map<number, Command>()
  #configuration: SandboxdConfiguration | null = null
  #shuttingDown: Promise<void> | null = null
  #oomScore: number | null = null
  #watchdog: Watchdog | null = null
  #heardAt = 0
  #calls: Promise<ServedCalls> | null = null
  readonly #terminals = new Terminals()

  constructor(options: SandboxdOptions) {
    this.#options = options
  }

  /** Acts on one frame. */
  receive(kind: number, id: number, payload: Uint8Array): void {
    this.#heardAt = performance.now()
    if (isCallFrame(kind)) {
      this.#receiveCall(kind, id, payload)
      return
    }
    const command = this.#commands.get(id)
    if (kind === FRAME.configure) this.#configure(decodeJson(payload) as SandboxdConfiguration)
    else if (kind === FRAME.spawn) this.#spawn(id, decodeJson(payload) as SpawnRequest)
    else if (kind === FRAME.stdin) command?.write(payload)
    else if (kind === FRAME.begin) this.#begin(id)
    else if (kind === FRAME.type) command?.type(payload)
    else if (kind === FRAME.endInput) command?.endInput()
    else if (kind === FRAME.resize) command?.resize(decodeJson(payload) as TerminalSize)
    else if (kind === FRAME.hangUp) command?.hangUp()
    else if (kind === FRAME.cancel) command?.cancel(decodeNumber(payload))
    else if (kind === FRAME.credit) command?.credit(decodeNumber(payload))
    else if (kind === FRAME.ping) this.#options.channel.send(FRAME.pong, id)
    else if (kind === FRAME.shutdown) void this.#options.exit()
  }

  /** Loads the services at the first call: a server that only runs commands does without. */
  #receiveCall(kind: number, id: number, payload: Uint8Array): void {
    this.#calls ??= this.#loadCalls()
    // In order, since promises keep the order of their listeners.
    void this.#calls
      .then((calls) => calls.receive(kind, id, payload))
      .catch((error: unknown) => this.#giveUp(error))
  }

  #giveUp(error: unknown): void {
    console.error(messageOf(error))
    void this.#options.exit()
  }

  async #loadCalls(): Promise<ServedCalls> {
    const { ServedCalls } = await import('./served-calls.ts')
    const { marker = '', workspace = '', caches = null } = this.#configuration ?? {}
    const processes = { marker, root: process.pid, find: this.#find }
    return new ServedCalls(this.#options.channel, { ...processes, workspace, caches })
  }

  /** Ends every process of the server but this one, and gives up what is under way for berth. */
  shutdown(): Promise<void> {
    this.#shuttingDown ??= Promise.all([this.#endProcesses(), this.#closeCalls()]).then(() => {})
    return this.#shuttingDown
  }

  async #endProcesses(): Promise<void> {
    await terminate(this.#find)
    // A look can miss a process whose parent ends just then. This process has adopted it by now.
    for (let round = 0; round < MOST_LOOKS && readChildren(process.pid)?.length !== 0; round += 1)
      await killAll(this.#find)
    const until = performance.now() + REPORT_MS
    while (
      performance.now() < until &&
      this.#commands.values().some((one) => one.pid !== null && !one.isStalled)
    )
      await Bun.sleep(1)
  }

  async #closeCalls(): Promise<void> {
    const calls = await this.#calls
    if (calls !== null) await Promise.race([calls.close(), Bun.sleep(CLOSE_MS)])
  }

  /** The server's processes: all descend from sandboxd, which adopts orphans. */
  readonly #find = (): number[] => findDescendants(process.pid)

  #configure(configuration: SandboxdConfiguration): void {
    const { libc, channel } = this.#options
    const { rlimits, watch } = configuration
    const { env, inherited } = configuration
    this.#configuration =
      inherited === undefined
        ? configuration
        : { ...configuration, env: withImageVariables(env, processEnvironment(), inherited) }
    libc.limit('core', 0)
    if (process.pid === 1) libc.ignoreSignals()
    if (rlimits.fileBytes !== undefined) libc.limit('fileBytes', rlimits.fileBytes)
    if (rlimits.processes !== undefined) libc.limit('processes', rlimits.processes)
    adoptOrphans(libc, () => this.#childPids())
    const watchesSockets = watch.socketBytes !== undefined && configuration.sendsSockets
    if (watch.memoryBytes !== undefined || watch.processes !== undefined || watchesSockets) {
      this.#watchdog = new Watchdog({
        configuration,
        memory: loadMemoryMeter({
          namespaces: process.pid === 1,
          network: configuration.sendsSockets,
          descriptorsShown: configuration.confinement.systemCalls,
        }),
        find: this.#find,
        commandsRun: () => this.#commands.size > 0,
      })
    }
    if (configuration.sendsSockets) sendBlankSockets()
    const openFiles = processes.maxOpenFiles()
    if (openFiles !== null) libc.limit('openFiles', Math.floor(openFiles * OPEN_FILES_SHARE))
    if (configuration.silenceMs !== null) this.#expectFrames(configuration.silenceMs)
    this.#oomScore = libc.openOomScore(OOM_SCORE_FD)
    libc.forbidTracing()
    this.#options.awaitThreads()
    try {
      confine(configuration.confinement, watch.memoryBytes !== undefined)
    } catch (error) {
      this.#giveUp(error)
      return
    }
    channel.send(FRAME.ready, 0, new TextEncoder().encode(VERSION))
  }

  /** Ends sandboxd when no frame has come for `silenceMs`: berth, or the way to it, is gone. */
  #expectFrames(silenceMs: number): void {
    const timer = setInterval(() => {
      if (performance.now() - this.#heardAt < silenceMs) return
      clearInterval(timer)
      void this.#options.exit()
    }, silenceMs / 3)
  }

  #childPids(): number[] {
    return [...this.#commands.values()].flatMap(({ pid }) => pid ?? [])
  }

  #spawn(id: number, request: SpawnRequest): void {
    const configuration = this.#configuration
    if (configuration === null || this.#shuttingDown !== null) {
      this.#fail(id, 'The sandbox is ending.')
      return
    }
    const { libc, channel } = this.#options
    const context = (pty: CommandContext['pty']): CommandContext => ({
      libc,
      configuration,
      pty,
      withOomScore: (spawn) => this.#withOomScore(spawn),
      output(stream, data) {
        for (let at = 0; at < data.length; at += CHUNK) {
          channel.send(FRAME[stream], id, data.subarray(at, at + CHUNK))
        }
      },
      typed: (bytes) => channel.send(FRAME.typed, id, encodeNumber(bytes)),
      started: (pid) => channel.send(FRAME.started, id, encodeNumber(pid)),
    })
    try {
      const pty = request.terminal === null ? null : this.#terminals.open(configuration)
      this.#commands.set(id, new Command(id, request, context(pty)))
    } catch (error) {
      this.#fail(id, messageOf(error))
      return
    }
    if (request.stdin !== 'file') this.#begin(id)
  }

  #begin(id: number): void {
    const command = this.#commands.get(id)
    if (command === undefined) return
    this.#watchdog?.watch()
    command
      .run()
      .then((report) => this.#options.channel.sendJson(FRAME.exit, id, report))
      .catch((error: unknown) => this.#fail(id, error instanceof SpawnError ? error.message : String(error)))
      .finally(() => this.#commands.delete(id))
  }

  #fail(id: number, message: string): void {
    this.#options.channel.sendJson(FRAME.failure, id, { message })
  }

  /**
   * Starts a child with the highest out-of-memory score. The child inherits it at the fork; this process then
   * restores its own, so the kernel ends a command first, never sandboxd.
   */
  #withOomScore<T>(spawn: () => T): T {
    this.#writeOomScore('1000')
    try {
      return spawn()
    } finally {
      this.#writeOomScore('0')
    }
  }

  #writeOomScore(score: string): void {
    try {
      if (this.#oomScore !== null) writeSync(this.#oomScore, score, 0)
    } catch {
      // Not permitted if an administrator has set berth's own score; then the kernel chooses.
    }
  }
}

/**
 * Adopts the sandbox's orphans. They can then be found as descendants even without a marker, and are reaped when they
 * end. `own` lists the children that Bun itself waits for.
 */
function adoptOrphans(libc: Libc, own: () => number[]): void {
  libc.adoptOrphans()
  // Most ended children are commands. Bun reaps these first, in the same turn of its loop.
  process.on('SIGCHLD', () => {
    setImmediate(() => reapOrphans(libc, new Set(own())))
  })
}

/** Reaps ended children that Bun does not wait for. */
function reapOrphans(libc: Libc, waitedFor: ReadonlySet<number>): void {
  for (let reaped = 0; reaped < MOST_REAPED; reaped++) {
    const pid = libc.endedChild()
    if (pid === null) return
    // The kernel does not say which children have ended besides this one.
    if (waitedFor.has(pid)) break
    libc.reap(pid)
  }
  for (const pid of readChildren(process.pid) ?? []) if (!waitedFor.has(pid)) libc.reap(pid)
}

/**
 * Runs the hidden command `berth __sandboxd`: the process inside a sandbox that starts commands for berth. Serves the
 * socket that it inherits as descriptor 3, or standard input and output with `--stdio`, or carriers that come and go with
 * `--listen PATH`. Ends, with everything it started, when that closes, because berth may have been killed. Imports only Bun and a few small files: every running
 * server pays for it in memory and start time.
 *
 * @param args those behind `__sandboxd`
 */
export async function runSandboxd(args: readonly string[]): Promise<void> {
  const libc = loadLibc()
  libc.leaveKeyring()
  // First, since loading a file would wait for the threads.
  const transport = await inheritedTransport(args, libc)
  // Its threads start while the rest of this process does.
  const awaitThreads = startPoolThreads(libc)
  // Ends with its socket, in order, not by a terminal's signals, which are meant for berth.
  for (const name of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) process.on(name, () => {})
  const exit = async (): Promise<void> => {
    await sandboxd.shutdown()
    channel.flush()
    await transport.finish?.()
    process.exit(0)
  }
  const channel = new FrameChannel({
    transport,
    maxPayload: MAX_TO_SANDBOXD,
    streamed: FRAME.data,
    onFrame: (kind, id, payload) => sandboxd.receive(kind, id, payload),
    onClosed: () => void exit(),
    onBroken: (error) => {
      console.error(error instanceof Error ? error.message : error)
      void exit()
    },
  })
  const sandboxd = new Sandboxd({ libc, channel, awaitThreads, exit })
  await channel.open()
  // What runs from here on is worth compiling early, unlike the start.
  Bun.unsafe.setJITPolicy(1)
}

/**
 * Returns sandboxd's end: its standard input and output with `--stdio`, carriers with `--listen` and a path, otherwise the
 * socket that it inherits.
 */
async function inheritedTransport(args: readonly string[], libc: Libc): Promise<FrameTransport> {
  const [kind, path] = args
  if (kind === LISTEN && path !== undefined) {
    const { ListeningTransport } = await import('./listen.ts')
    return new ListeningTransport(path)
  }
  if (!args.includes(STDIO)) return new QuietSocketTransport(SANDBOXD_FD, libc)
  return new PipeTransport(Bun.file(0).stream(), Bun.file(1).writer())
}

/**
 * Makes `BLANK_SOCKETS` and `RULES_SOCKET` in the network of this process and sends them to berth over
 * `DESCRIPTORS_FD`, which it then closes, and `REPORT_READER_FD` too. A socket belongs to the network that it was made
 * in, whoever uses it. Leaves out those of IPv6 if the kernel has none. Must be called before the first command, so that
 * nothing on the server ever has a copy.
 */
function sendBlankSockets(): void {
  try {
    loadDescriptorCalls().sendNew(DESCRIPTORS_FD, [
      ...BLANK_SOCKETS.map((blank) => ({ ...blank, protocol: 0 })),
      RULES_SOCKET,
    ])
  } finally {
    for (const descriptor of [DESCRIPTORS_FD, REPORT_READER_FD]) closeSync(descriptor)
  }
}

/** Threads of Bun's pool; SANDBOXD_ENVIRONMENT sets this limit. */
const POOL_THREADS = 2

/** How often they are looked for, and microseconds between two looks. @bound program */
const MOST_THREAD_LOOKS = 2_000
const REST_US = 50

/**
 * Makes Bun start the threads of its pool while the process limit leaves room: it aborts if it needs a thread later and
 * cannot have one. Each is given a read that blocks, so that the next one needs another.
 *
 * @returns a function that waits until they are there, which usually takes no time, and ends the reads
 */
function startPoolThreads(libc: Pick<Libc, 'pipe' | 'rest' | 'poolThreads'>): () => void {
  const writers = Array.from({ length: POOL_THREADS }, () => {
    const ends = libc.pipe('write')
    read(ends.read, new Uint8Array(1), 0, 1, null, () => closeSync(ends.read))
    return ends.write
  })
  return () => {
    for (let look = 0; look < MOST_THREAD_LOOKS && libc.poolThreads() < POOL_THREADS; look += 1) {
      // A new thread may have to wait for this one's processor, for milliseconds if this one goes on.
      libc.rest(REST_US)
    }
    for (const writer of writers) {
      writeSync(writer, '\n')
      closeSync(writer)
    }
  }
}
