import { readFileSync } from 'node:fs'
import { constants } from 'node:os'

/** Waits for the end of its input, which comes with the end of berth, and leaves no core file. */
const WAIT = 'trap "" $0; ulimit -c 0; exec cat'

type Waiting = Bun.Subprocess<'pipe', 'ignore', 'ignore'>

/** Milliseconds in which the copies of a signal have surely come. */
const TOGETHER_MS = 500

/**
 * Finds out whether a signal was sent to the whole process group: a process that does nothing but wait is in it, and is
 * ended by what it is sent. The kernel gives a program the sender of a signal, but the runtime does not pass that on.
 */
export class GroupWatch {
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
  async saw(name: NodeJS.Signals): Promise<boolean> {
    const waiting = this.#waiting
    const status = readStatus(waiting.pid)
    if (status !== null && isPending(status, name)) {
      this.#renew(waiting)
      return true
    }
    if (status === null || /^State:\s+[ZX]/m.test(status)) {
      await waiting.exited
      // Where several signals came together, another may have ended it: its caller is notified.
      if (this.#waiting === waiting && waiting.signalCode !== null)
        this.#seen.set(waiting.signalCode, performance.now())
      this.#renew(waiting)
    }
    const seenAt = this.#seen.get(name)
    this.#seen.delete(name)
    return seenAt !== undefined && performance.now() - seenAt < TOGETHER_MS
  }

  close(): void {
    this.#waiting.kill('SIGKILL')
  }

  #renew(waiting: Waiting): void {
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
