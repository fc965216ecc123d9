import { processes } from '../../system/processes.ts'
import type { MemoryMeter, ServerMemory } from '../../system/system.ts'
import { killAll, readMarker, signal } from '../processes.ts'
import type { SandboxdConfiguration } from './protocol.ts'

/** Milliseconds between two looks. */
const INTERVAL_MS = 500

/**
 * The same beside a memory cgroup, after so many looks in a row at few sockets: an app that waits for requests then hardly
 * wakes the process in its sandbox.
 */
const QUIET_INTERVAL_MS = 2_000
const QUIET_LOOKS = 10

/** sandboxd, and the programs by which berth reaches it. */
const OWN_PROCESSES = 4

/** The options of `Watchdog`. */
interface WatchdogOptions {
  configuration: SandboxdConfiguration
  memory: MemoryMeter
  /** Lists the server's processes except sandboxd. */
  find: () => number[]
  /** Reports whether a command is running. */
  commandsRun: () => boolean
}

/**
 * Enforces the limits of a server's memory and processes that no cgroup enforces: ends what holds the most memory, or the
 * command with the most processes. Looks only while the server has processes, and once more: an idle server costs nothing.
 */
export class Watchdog {
  readonly #options: WatchdogOptions
  #timer: Timer | null = null
  #quietLooks = 0

  constructor(options: WatchdogOptions) {
    this.#options = options
  }

  /** Looks from now on, until the server has no processes. Call it whenever a command starts. */
  watch(): void {
    if (this.#isQuiet) {
      clearTimeout(this.#timer ?? undefined)
      this.#timer = null
    }
    this.#quietLooks = 0
    this.#timer ??= this.#nextLook()
  }

  get #isQuiet(): boolean {
    return this.#quietLooks > QUIET_LOOKS
  }

  #nextLook(): Timer {
    return setTimeout(() => void this.#look(), this.#isQuiet ? QUIET_INTERVAL_MS : INTERVAL_MS)
  }

  async #look(): Promise<void> {
    const { configuration, find, commandsRun } = this.#options
    const { memoryBytes, processes: limit } = configuration.watch
    // A look at sockets alone is cheap, unlike one at processes.
    const countsProcesses = limit !== undefined || memoryBytes !== undefined
    let isLast = false
    try {
      if (limit !== undefined && isFlooded(limit)) await endFlood(find)
      const pids = countsProcesses || !commandsRun() ? find() : null
      isLast = pids?.length === 0 && !commandsRun()
      // A command that starts meanwhile begins anew.
      if (isLast) this.#timer = null
      if (limit !== undefined && (pids?.length ?? 0) > limit) await endLargestCommand(find)
      this.#lookAtMemory(pids ?? [])
    } finally {
      if (!isLast) this.#timer = this.#nextLook()
    }
  }

  #lookAtMemory(pids: number[]): void {
    const { configuration, memory, find } = this.#options
    const { memoryBytes, socketBytes } = configuration.watch
    const { sockets } = memory
    if (memoryBytes !== undefined) endHolders(memory.measure(pids, memoryBytes), memoryBytes)
    else if (socketBytes !== undefined && sockets !== null) {
      // Until then many more sockets have to be made first, whatever those hold that are there.
      const mayHoldTooMuch = sockets.most() > socketBytes
      this.#quietLooks = mayHoldTooMuch ? 0 : this.#quietLooks + 1
      if (mayHoldTooMuch) endHolders(sockets.measure(find, socketBytes), socketBytes)
    }
  }
}

/** Ends what holds the most memory until the rest is within a limit: everything, if nothing of it holds enough. */
function endHolders({ bytes, holders }: ServerMemory, limit: number): void {
  let left = bytes
  for (const holder of [...holders].sort((a, b) => b.bytes - a.bytes)) {
    if (left <= limit) return
    holder.end()
    left -= holder.bytes
  }
}

/** Reports whether the namespace of which this is process 1 has more processes than the server may have. */
const isFlooded = (limit: number): boolean =>
  process.pid === 1 && processes.pids().length > limit + OWN_PROCESSES

/**
 * Ends a fork bomb. Beside hundreds of processes that never rest, a look at each takes minutes, and what is killed grows back
 * meanwhile: so one call of the system stops them all first. What was stopped before goes on, too.
 */
async function endFlood(find: () => number[]): Promise<void> {
  signal(-1, 'SIGSTOP')
  try {
    await endLargestCommand(find)
  } finally {
    signal(-1, 'SIGCONT')
  }
}

async function endLargestCommand(find: () => number[]): Promise<void> {
  const counts = new Map<string | null, number>()
  for (const marker of find().map(readMarker)) counts.set(marker, (counts.get(marker) ?? 0) + 1)
  const [largest] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [null]
  await killAll(() => find().filter((pid) => readMarker(pid) === largest))
}
