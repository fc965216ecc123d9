import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { signal as send } from '../../compute/terminate.ts'
import { GroupWatch } from './group-watch.ts'

/** What is passed on to the command. Those that stop and continue a job, or report a terminal's size, go to its whole group. */
const PASSED_ON = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const

type PassedOn = (typeof PASSED_ON)[number]

/** Milliseconds after which it is certain whether a signal was sent to the whole group: its copies come together. */
const SETTLE_MS = 10

/** Exit code of a process that a signal ended, as shells report it. */
export const codeOfSignal = (name: NodeJS.Signals): number => 128 + constants.signals[name]

/**
 * Passes signals on to the command. One that its whole process group was sent, as Ctrl-C on a terminal is, has reached
 * the command already and is not sent twice.
 */
export class SignalRelay {
  /** Without `SIG`. */
  readonly #ignored: readonly string[]
  readonly #pending = new Set<PassedOn>()
  readonly #listeners = new Map<PassedOn, () => void>()
  #pid: number | null = null
  #watch: GroupWatch | null = null
  #received: PassedOn | null = null
  readonly #arrived = Promise.withResolvers<void>()
  #onSignal: (name: PassedOn) => void = (name) => this.#settle(name)

  /** @param ignored signals that this process was started to ignore, as `nohup` does: they stay ignored */
  constructor(ignored: ReadonlySet<string>) {
    this.#ignored = [...ignored].map((name) => name.slice('SIG'.length))
    for (const name of PASSED_ON) {
      if (ignored.has(name)) continue
      const listener = (): void => {
        this.#received ??= name
        this.#arrived.resolve()
        this.#onSignal(name)
      }
      this.#listeners.set(name, listener)
      process.on(name, listener)
    }
  }

  /** The first signal that came, null where none did. */
  get received(): PassedOn | null {
    return this.#received
  }

  /** Resolves at the first signal. */
  get arrived(): Promise<void> {
    return this.#arrived.promise
  }

  /** Passes further signals on to a child, which is in the process group of this process. */
  to(pid: number): void {
    this.#pid = pid
    this.#watch = new GroupWatch(this.#ignored)
  }

  /**
   * The child has ended. One signal more is let pass, since it may be a copy of what ended the child; a second ends this
   * process on the spot.
   *
   * @param lastWords is called before
   */
  over(lastWords: () => void): void {
    this.#pid = null
    this.#watch?.close()
    let warned = false
    this.#onSignal = (name) => {
      if (!warned) {
        warned = true
        return
      }
      lastWords()
      process.exit(codeOfSignal(name))
    }
  }

  #settle(name: PassedOn): void {
    if (this.#pid === null || this.#pending.has(name)) return
    this.#pending.add(name)
    setTimeout(async () => {
      this.#pending.delete(name)
      const wasForAll = await this.#watch?.saw(name)
      if (this.#pid !== null && !wasForAll) send(this.#pid, name)
    }, SETTLE_MS)
  }
}

/** The signals that this process was started to ignore. Programs that it starts would not ignore them by themselves. */
export function ignoredSignals(): Set<string> {
  try {
    const [, mask = '0'] = /^SigIgn:\s+([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'latin1')) ?? []
    const bits = BigInt(`0x${mask}`)
    const isIgnored = (name: PassedOn): boolean => ((bits >> BigInt(constants.signals[name] - 1)) & 1n) === 1n
    return new Set(PASSED_ON.filter(isIgnored))
  } catch {
    return new Set()
  }
}
