import { readMarker } from '../find-processes.ts'
import { killAll } from '../terminate.ts'
import type { Libc } from './libc.ts'
import type { SandboxdConfiguration } from './protocol.ts'
import { measureMemory, measureSockets, type PrivateMemory, type ServerMemory } from './server-memory.ts'

/** Milliseconds between two looks. */
const INTERVAL_MS = 500

/** The options of `Watchdog`. */
interface WatchdogOptions {
  configuration: SandboxdConfiguration
  libc: Libc
  privateMemory: PrivateMemory
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

  constructor(options: WatchdogOptions) {
    this.#options = options
  }

  /** Looks from now on, until the server has no processes. Call it whenever a command starts. */
  watch(): void {
    this.#timer ??= setInterval(() => void this.#look(), INTERVAL_MS)
  }

  async #look(): Promise<void> {
    const { configuration, libc, privateMemory, find, commandsRun } = this.#options
    const { processes, memoryBytes, socketBytes } = configuration.watch
    // A look at sockets alone is cheap, unlike one at processes.
    const countsProcesses = processes !== undefined || memoryBytes !== undefined
    const pids = countsProcesses || !commandsRun() ? find() : null
    if (pids?.length === 0 && !commandsRun()) this.#rest()
    if (processes !== undefined && (pids?.length ?? 0) > processes) await endLargestCommand(find)
    if (memoryBytes !== undefined)
      endHolders(measureMemory(pids ?? [], memoryBytes, privateMemory, libc), memoryBytes)
    else if (socketBytes !== undefined && privateMemory.sockets !== null)
      endHolders(measureSockets(find, socketBytes, privateMemory.sockets), socketBytes)
  }

  #rest(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
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

async function endLargestCommand(find: () => number[]): Promise<void> {
  const counts = new Map<string | null, number>()
  for (const marker of find().map(readMarker)) counts.set(marker, (counts.get(marker) ?? 0) + 1)
  const [largest] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [null]
  await killAll(() => find().filter((pid) => readMarker(pid) === largest))
}
