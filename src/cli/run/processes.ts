import { findFamily, MARKER_NAME, readName, rememberProcesses, signal } from '../../compute/processes.ts'

/** Milliseconds that processes have to end by themselves after SIGTERM, and between two looks. */
const GRACE_MS = 2_000
const POLL_MS = 20

/** A process that was ended. */
interface EndedProcess {
  readonly pid: number
  /** Its program, cut to 15 characters. */
  readonly name: string
}

/**
 * The processes that a command starts, also those that outlive it: they have a variable of this run in their environment, or descend
 * from one that has.
 */
export class CommandProcesses {
  readonly #marker: string

  constructor() {
    this.#marker = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex')
  }

  /** The variable that the command gets, and passes on to what it starts. */
  get variables(): Record<string, string> {
    return { [MARKER_NAME]: this.#marker }
  }

  /**
   * Ends the processes: with SIGTERM, and those that are still there after two seconds with SIGKILL.
   *
   * @param command pid of the command, if it still runs
   * @returns those that were found
   */
  async end(command: number | null): Promise<EndedProcess[]> {
    const pids = this.#find(command === null ? [] : [command])
    if (pids.length === 0) return []
    const ended = pids.map((pid) => ({ pid, name: readName(pid) ?? '' }))
    const left = rememberProcesses(pids)
    for (const pid of left()) signal(pid, 'SIGTERM')
    for (const until = performance.now() + GRACE_MS; left().length > 0 && performance.now() < until; )
      await Bun.sleep(POLL_MS)
    // With what they have started meanwhile.
    for (const pid of new Set([...left(), ...this.#find(left())])) signal(pid, 'SIGKILL')
    return ended
  }

  #find(roots: readonly number[]): number[] {
    try {
      return findFamily({ roots, sessions: [], marker: this.#marker, except: [process.pid] })
    } catch {
      // A system without /proc: only the command itself is known.
      return [...roots]
    }
  }
}
