import { accountCaller, type Caller, mayReachServer } from '../../http/caller.ts'
import type { NotifiedChange } from '../../runtime/change-notifier.ts'
import { messageOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { ChangeSource } from '../changes/stream.ts'
import type { ServerUsage } from './model.ts'

/** Milliseconds of real time between two measurements. */
const INTERVAL_MS = 2_000

/** What measures. */
interface Measuring {
  /** Measures the servers that run, of those that a caller reaches. */
  running(caller: Caller): Promise<ReadonlyMap<string, ServerUsage>>
  /** Returns the usage of a server that does not run; undefined if it is gone. */
  atRest(serverId: string): ServerUsage | undefined
}

/** A reader of measurements. */
interface Reader {
  readonly accountId: string
  readonly reaches: (serverId: string) => boolean
  readonly watcher: (change: NotifiedChange<'usage'>) => void
}

/** A measurement, and whose server it is of. */
interface Measurement {
  readonly accountId: string
  readonly usage: ServerUsage
}

/**
 * Measures servers again and again while somebody reads: once for all readers, and only servers that run. Nothing is
 * measured while nobody does.
 */
export class LiveUsage {
  readonly #measuring: Measuring
  readonly #logger: Logger
  readonly #readers = new Set<Reader>()
  /** The last measurement of servers that run. */
  #latest: ReadonlyMap<string, Measurement> = new Map()
  #isMeasuring = false
  /** Ends the pause between two measurements. */
  #wake = (): void => {}

  constructor(measuring: Measuring, logger: Logger) {
    this.#measuring = measuring
    this.#logger = logger
  }

  /** Returns what servers use of all that a caller reaches. @param serverId limits it to one */
  sourceOf(caller: Caller, serverId?: string): ChangeSource<'usage'> {
    const { accountId } = caller
    const reaches = (id: string): boolean =>
      (serverId === undefined || id === serverId) && mayReachServer(caller, id)
    return {
      watch: (watcher) => this.#watch({ accountId, reaches, watcher }),
      read: ({ type, id }) => {
        const value = this.#latest.get(id)?.usage ?? this.#measuring.atRest(id) ?? null
        return { type, id, value }
      },
    }
  }

  #watch(reader: Reader): () => void {
    this.#readers.add(reader)
    if (!this.#isMeasuring) void this.#run()
    else if (!sendTo(reader, this.#latest)) this.#wake()
    return () => {
      this.#readers.delete(reader)
      if (this.#readers.size === 0) this.#wake()
    }
  }

  async #run(): Promise<void> {
    this.#isMeasuring = true
    while (this.#readers.size > 0) {
      try {
        await this.#measure()
      } catch (error) {
        // The state may be closed meanwhile, which ends the readers first.
        if (this.#readers.size > 0)
          this.#logger.error('servers could not be measured', { error: messageOf(error) })
      }
      if (this.#readers.size > 0) await this.#pause()
    }
    this.#isMeasuring = false
    this.#latest = new Map()
  }

  async #measure(): Promise<void> {
    const before = this.#latest
    const now = new Map<string, Measurement>()
    for (const accountId of new Set([...this.#readers].map((reader) => reader.accountId)))
      for (const [id, usage] of await this.#measuring.running(accountCaller(accountId)))
        now.set(id, { accountId, usage })
    this.#latest = now
    // One that has stopped is sent once more: it uses nothing now.
    const stopped = [...before].filter(([id]) => !now.has(id))
    for (const reader of this.#readers) sendTo(reader, [...now, ...stopped])
  }

  #pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, INTERVAL_MS).unref()
    this.#wake = () => {
      clearTimeout(timer)
      resolve()
    }
    return promise
  }
}

/** Sends a reader the measurements that it may see. @returns whether there were any */
function sendTo(reader: Reader, measurements: Iterable<readonly [string, Measurement]>): boolean {
  let hasSent = false
  for (const [id, { accountId }] of measurements) {
    if (accountId !== reader.accountId || !reader.reaches(id)) continue
    reader.watcher({ type: 'usage', id, accountId, serverId: id })
    hasSent = true
  }
  return hasSent
}
