import { readFileSync } from 'node:fs'
import { readMarker } from '../processes.ts'
import { killAll, signal } from '../terminate.ts'
import type { SandboxdConfiguration } from './protocol.ts'

/** Milliseconds between two looks. */
const INTERVAL_MS = 500

/**
 * Enforces a server's memory and process limits if no cgroup does: ends the process with the most memory, or the
 * command with the most processes.
 */
export class Watchdog {
  readonly #configuration: SandboxdConfiguration
  readonly #find: () => number[]
  readonly #commandsRun: () => boolean
  #occupied = false

  /**
   * @param find lists the server's processes except sandboxd
   * @param commandsRun reports whether a command is running
   */
  constructor(configuration: SandboxdConfiguration, find: () => number[], commandsRun: () => boolean) {
    this.#configuration = configuration
    this.#find = find
    this.#commandsRun = commandsRun
  }

  /** Looks from now on, as long as sandboxd lives. */
  start(): void {
    setInterval(() => void this.#look(), INTERVAL_MS)
  }

  async #look(): Promise<void> {
    // An idle server costs nothing: only commands and their children can grow.
    if (!this.#occupied && !this.#commandsRun()) return
    const { watch } = this.#configuration
    const pids = this.#find()
    this.#occupied = pids.length > 0
    if (watch.processes !== undefined && pids.length > watch.processes) await endLargestCommand(this.#find)
    if (watch.memoryBytes !== undefined) endLargestProcess(pids, watch.memoryBytes)
  }
}

function endLargestProcess(pids: readonly number[], limit: number): void {
  const sizes = pids.map((pid) => ({ pid, bytes: memoryOf(pid) })).sort((a, b) => b.bytes - a.bytes)
  let total = sizes.reduce((sum, { bytes }) => sum + bytes, 0)
  for (const { pid, bytes } of sizes) {
    if (total <= limit) return
    signal(pid, 'SIGKILL')
    total -= bytes
  }
}

async function endLargestCommand(find: () => number[]): Promise<void> {
  const counts = new Map<string | null, number>()
  for (const marker of find().map(readMarker)) counts.set(marker, (counts.get(marker) ?? 0) + 1)
  const [largest] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [null]
  await killAll(() => find().filter((pid) => readMarker(pid) === largest))
}

/** Returns bytes that only this process holds: its own pages and shared memory, not files' pages. */
function memoryOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    const kib = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
    return (kib('RssAnon') + kib('RssShmem')) * 1024
  } catch {
    return 0
  }
}
