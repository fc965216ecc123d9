import { constants } from 'node:os'
import { signal as send } from '../../compute/terminate.ts'
import { readTextOrNull } from '../../runtime/read-text.ts'

/**
 * Signals to relay to the command. Job control and terminal resizes reach its whole process group without a relay.
 */
const RELAYED_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const

type RelayedSignal = (typeof RELAYED_SIGNALS)[number]

/** Milliseconds after which all copies of a signal to the process group have arrived. */
const RELAY_DELAY_MS = 10

/** Exit code of a process that a signal ended, as shells report it. */
export const signalExitCode = (name: NodeJS.Signals): number => 128 + constants.signals[name]

/**
 * Relays signals to the command. A signal to the whole process group, such as Ctrl-C on a terminal, has already
 * reached the command and is not sent again.
 */
export class SignalRelay {
  /** Names without `SIG`. */
  readonly #ignored: readonly string[]
  readonly #pending = new Set<RelayedSignal>()
  readonly #listeners = new Map<RelayedSignal, () => void>()
  #pid: number | null = null
  #watch: GroupSignalDetector | null = null
  #received: RelayedSignal | null = null
  readonly #firstSignal = Promise.withResolvers<void>()
  #onSignal: (name: RelayedSignal) => void = (name) => this.#relay(name)

  /**
   * @param ignored signals that this process was started to ignore, as with `nohup`; they stay ignored
   */
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

  /** The first signal received; null for none. */
  get received(): RelayedSignal | null {
    return this.#received
  }

  /** Resolves at the first signal. */
  get firstSignal(): Promise<void> {
    return this.#firstSignal.promise
  }

  /** Relays further signals to a child, which is in the process group of this process. */
  relayTo(pid: number): void {
    this.#pid = pid
    this.#watch = new GroupSignalDetector(this.#ignored)
  }

  /**
   * Handles the child's end. Ignores one more signal, which may be a copy of the one that ended the child. A second
   * one ends this process at once.
   *
   * @param beforeExit called before that
   */
  childExited(beforeExit: () => void): void {
    this.#pid = null
    this.#watch?.close()
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
    if (this.#pid === null || this.#pending.has(name)) return
    this.#pending.add(name)
    setTimeout(async () => {
      this.#pending.delete(name)
      const wasSentToGroup = await this.#watch?.wasSent(name)
      if (this.#pid !== null && !wasSentToGroup) send(this.#pid, name)
    }, RELAY_DELAY_MS)
  }
}

/** Returns the signals that this process was started to ignore. Child processes do not inherit them from Bun. */
export function ignoredSignals(): Set<string> {
  const status = readTextOrNull('/proc/self/status') ?? ''
  const [, mask = '0'] = /^SigIgn:\s+([0-9a-f]+)$/m.exec(status) ?? []
  const bits = BigInt(`0x${mask}`)
  const isIgnored = (name: RelayedSignal): boolean =>
    ((bits >> BigInt(constants.signals[name] - 1)) & 1n) === 1n
  return new Set(RELAYED_SIGNALS.filter(isIgnored))
}

/** Waits for the end of its input, which closes with berth, and leaves no core file. */
const WAIT = 'trap "" $0; ulimit -c 0; exec cat'

type Waiting = Bun.Subprocess<'pipe', 'ignore', 'ignore'>

/** Milliseconds within which all copies of a signal arrive. */
const COPY_WINDOW_MS = 500

/**
 * Detects whether a signal was sent to the whole process group, with an idle process in the group that such a signal
 * ends. The kernel reports the sender of a signal, but the runtime does not expose it.
 */
class GroupSignalDetector {
  readonly #ignored: readonly string[]
  #waiting: Waiting
  /** Signals that have ended an idle process, and when that was noticed. */
  readonly #seen = new Map<NodeJS.Signals | number, number>()

  /**
   * @param ignored names, without `SIG`, of signals that must not end any process of the group
   */
  constructor(ignored: readonly string[]) {
    this.#ignored = ignored
    this.#waiting = this.#start()
  }

  /** Reports whether the group has just received this signal. */
  async wasSent(name: NodeJS.Signals): Promise<boolean> {
    const waiting = this.#waiting
    const status = await settledStatus(waiting.pid, name)
    if (status !== null && isPending(status, name)) {
      this.#restart(waiting)
      return true
    }
    if (status === null || /^State:\s+[ZX]/m.test(status)) {
      await waiting.exited
      // With several signals at once, another one may have ended it. The call for that one finds it here.
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
    // Signal 0 is no signal: sh runs its trap at its own exit, which `exec` prevents.
    const waiting = Bun.spawn(['/bin/sh', '-c', WAIT, this.#ignored.join(' ') || '0'], {
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env: { PATH: '/usr/bin:/bin' },
    })
    waiting.unref()
    return waiting
  }
}

/**
 * Returns the status of an idle process as soon as it waits for its input, has a signal pending or has ended; null if it is
 * gone. One that a signal is ending shows neither: on a busy machine it may be so for a while.
 */
async function settledStatus(pid: number, name: NodeJS.Signals): Promise<string | null> {
  const deadline = performance.now() + COPY_WINDOW_MS
  for (;;) {
    const status = readTextOrNull(`/proc/${pid}/status`)
    const isSettled = status === null || /^State:\s+[SZX]/m.test(status) || isPending(status, name)
    if (isSettled || performance.now() > deadline) return status
    await Bun.sleep(1)
  }
}

/** Reports whether a signal is pending in a process. See proc_pid_status(5). */
function isPending(status: string, name: NodeJS.Signals): boolean {
  const bit = 1n << BigInt(constants.signals[name] - 1)
  return [...status.matchAll(/^(?:Sig|Shd)Pnd:\s+([0-9a-f]+)$/gm)].some(
    ([, mask]) => (BigInt(`0x${mask}`) & bit) !== 0n,
  )
}
