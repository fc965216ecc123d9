import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { signal as send } from '../../compute/terminate.ts'

/** What is passed on to the command. Those that stop and continue a job, or report a terminal's size, go to its whole group. */
const RELAYED_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const

type RelayedSignal = (typeof RELAYED_SIGNALS)[number]

/** Milliseconds after which it is certain whether a signal was sent to the whole group: its copies come together. */
const RELAY_DELAY_MS = 10

/** Exit code of a process that a signal ended, as shells report it. */
export const signalExitCode = (name: NodeJS.Signals): number => 128 + constants.signals[name]

/**
 * Passes signals on to the command. One that its whole process group was sent, as Ctrl-C on a terminal is, has reached
 * the command already and is not sent twice.
 */
export class SignalRelay {
  /** Without `SIG`. */
  readonly #ignored: readonly string[]
  readonly #pending = new Set<RelayedSignal>()
  readonly #listeners = new Map<RelayedSignal, () => void>()
  #pid: number | null = null
  #watch: GroupSignalDetector | null = null
  #received: RelayedSignal | null = null
  readonly #firstSignal = Promise.withResolvers<void>()
  #onSignal: (name: RelayedSignal) => void = (name) => this.#relay(name)

  /** @param ignored signals that this process was started to ignore, as `nohup` does: they stay ignored */
  constructor(ignored: ReadonlySet<string>) {
    this.#ignored = [...ignored].map((name) => name.slice('SIG'.length))
    for (const name of RELAYED_SIGNALS) {
      if (ignored.has(name)) continue
      const listener = (): void => {
        this.#received ??= name
        this.#firstSignal.resolve()
        this.#onSignal(name)
      }
      this.#listeners.set(name, listener)
      process.on(name, listener)
    }
  }

  /** The first signal that came, null where none did. */
  get received(): RelayedSignal | null {
    return this.#received
  }

  /** Resolves at the first signal. */
  get firstSignal(): Promise<void> {
    return this.#firstSignal.promise
  }

  /** Passes further signals on to a child, which is in the process group of this process. */
  relayTo(pid: number): void {
    this.#pid = pid
    this.#watch = new GroupSignalDetector(this.#ignored)
  }

  /**
   * The child has ended. One signal more is let pass, since it may be a copy of what ended the child; a second ends this
   * process on the spot.
   *
   * @param lastWords is called before
   */
  childExited(lastWords: () => void): void {
    this.#pid = null
    this.#watch?.close()
    let warned = false
    this.#onSignal = (name) => {
      if (!warned) {
        warned = true
        return
      }
      lastWords()
      process.exit(signalExitCode(name))
    }
  }

  #relay(name: RelayedSignal): void {
    if (this.#pid === null || this.#pending.has(name)) return
    this.#pending.add(name)
    setTimeout(async () => {
      this.#pending.delete(name)
      const wasForAll = await this.#watch?.wasSent(name)
      if (this.#pid !== null && !wasForAll) send(this.#pid, name)
    }, RELAY_DELAY_MS)
  }
}

/** The signals that this process was started to ignore. Programs that it starts would not ignore them by themselves. */
export function ignoredSignals(): Set<string> {
  try {
    const [, mask = '0'] = /^SigIgn:\s+([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'latin1')) ?? []
    const bits = BigInt(`0x${mask}`)
    const isIgnored = (name: RelayedSignal): boolean =>
      ((bits >> BigInt(constants.signals[name] - 1)) & 1n) === 1n
    return new Set(RELAYED_SIGNALS.filter(isIgnored))
  } catch {
    return new Set()
  }
}

/** Waits for the end of its input, which comes with the end of berth, and leaves no core file. */
const WAIT = 'trap "" $0; ulimit -c 0; exec cat'

type Waiting = Bun.Subprocess<'pipe', 'ignore', 'ignore'>

/** Milliseconds in which the copies of a signal have surely come. */
const COPY_WINDOW_MS = 500

/**
 * Finds out whether a signal was sent to the whole process group: a process that does nothing but wait is in it, and is
 * ended by what it is sent. The kernel gives a program the sender of a signal, but the runtime does not pass that on.
 */
class GroupSignalDetector {
  readonly #ignored: readonly string[]
  #waiting: Waiting
  /** What ended a process that waited, and when that was seen. */
  readonly #seen = new Map<NodeJS.Signals | number, number>()

  /** @param ignored names of the signals that nobody in the group is to be ended by, without `SIG` */
  constructor(ignored: readonly string[]) {
    this.#ignored = ignored
    this.#waiting = this.#start()
  }

  /** Whether the group was sent this signal just now. */
  async wasSent(name: NodeJS.Signals): Promise<boolean> {
    const waiting = this.#waiting
    const status = readStatus(waiting.pid)
    if (status !== null && isPending(status, name)) {
      this.#restart(waiting)
      return true
    }
    if (status === null || /^State:\s+[ZX]/m.test(status)) {
      await waiting.exited
      // Where several signals came together, another may have ended it: its caller is notified.
      if (this.#waiting === waiting && waiting.signalCode !== null)
        this.#seen.set(waiting.signalCode, performance.now())
      this.#restart(waiting)
    }
    const seenAt = this.#seen.get(name)
    this.#seen.delete(name)
    return seenAt !== undefined && performance.now() - seenAt < COPY_WINDOW_MS
  }

  close(): void {
    this.#waiting.kill('SIGKILL')
  }

  #restart(waiting: Waiting): void {
    if (this.#waiting !== waiting) return
    this.close()
    this.#waiting = this.#start()
  }

  #start(): Waiting {
    // Signal 0 is none: sh takes it for its own end, which does not come.
    const waiting = Bun.spawn(['/bin/sh', '-c', WAIT, this.#ignored.join(' ') || '0'], {
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env: { PATH: '/usr/bin:/bin' },
    })
    waiting.unref()
    return waiting
  }
}

/** Whether a process has been sent a signal that it did not come to act on yet. See proc_pid_status(5). */
function isPending(status: string, name: NodeJS.Signals): boolean {
  const bit = 1n << BigInt(constants.signals[name] - 1)
  return [...status.matchAll(/^(?:Sig|Shd)Pnd:\s+([0-9a-f]+)$/gm)].some(
    ([, mask]) => (BigInt(`0x${mask}`) & bit) !== 0n,
  )
}

function readStatus(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/status`, 'latin1')
  } catch {
    return null
  }
}
