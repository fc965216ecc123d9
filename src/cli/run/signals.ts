import { constants } from 'node:os'
import { signal as send } from '../../compute/processes.ts'
import { processes } from '../../system/processes.ts'

/**
 * Signals to relay to the command. Job control and terminal resizes reach its whole process group without a relay.
 */
const RELAYED_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const

type RelayedSignal = (typeof RELAYED_SIGNALS)[number]

/** Signals that keys of a terminal send, to all processes of its foreground group. */
const KEY_SIGNALS: ReadonlySet<RelayedSignal> = new Set(['SIGINT', 'SIGQUIT'])

/** Exit code of a process that a signal ended, as shells report it. */
export const signalExitCode = (name: NodeJS.Signals): number => 128 + constants.signals[name]

/**
 * Relays signals to the command, which is in the process group of this process. Ctrl-C on a terminal reaches both, so it is
 * not relayed.
 */
export class SignalRelay {
  #pid: number | null = null
  #received: RelayedSignal | null = null
  readonly #firstSignal = Promise.withResolvers<void>()
  #onSignal: (name: RelayedSignal) => void = (name) => this.#relay(name)

  /**
   * @param ignored signals that this process was started to ignore, as with `nohup`; they stay ignored
   */
  constructor(ignored: ReadonlySet<string>) {
    for (const name of RELAYED_SIGNALS) {
      if (ignored.has(name)) continue
      process.on(name, () => {
        this.#received ??= name
        this.#firstSignal.resolve()
        this.#onSignal(name)
      })
    }
  }

  /** The first signal received; null for none. */
  get received(): RelayedSignal | null {
    return this.#received
  }

  /** Resolves at the first signal. */
  get firstSignal(): Promise<void> {
    return this.#firstSignal.promise
  }

  /** Relays further signals to a child. */
  relayTo(pid: number): void {
    this.#pid = pid
  }

  /**
   * Handles the child's end. Ignores one more signal, which may be a copy of the one that ended the child. A second
   * one ends this process at once.
   *
   * @param beforeExit called before that
   */
  childExited(beforeExit: () => void): void {
    this.#pid = null
    let warned = false
    this.#onSignal = (name) => {
      if (!warned) {
        warned = true
        return
      }
      beforeExit()
      process.exit(signalExitCode(name))
    }
  }

  #relay(name: RelayedSignal): void {
    if (this.#pid === null || (KEY_SIGNALS.has(name) && processes.isInForeground())) return
    send(this.#pid, name)
  }
}

/** Returns the signals that this process was started to ignore. Child processes do not inherit them from Bun. */
export function ignoredSignals(): Set<string> {
  const isIgnored = processes.ignoredSignals()
  return new Set(RELAYED_SIGNALS.filter((name) => isIgnored(constants.signals[name])))
}
