import type { SendEvent } from '../../http/sse.ts'
import type { TaskEvent } from './model.ts'
import type { TaskRecords } from './records.ts'
import type { ShownDelta, Transcript, Watcher } from './transcript.ts'

/** Events that are read from the database at a time: each may be long, and readers many. */
const PAGE = 16

/**
 * Characters that may wait for a slow reader. Beyond that, events are read from the database, without pieces of
 * output.
 */
const MOST_WAITING = 1024 * 1024

/** What is to be followed, and how. */
interface Following {
  taskId: string
  records: TaskRecords
  /** The transcript of the running task; null if the task has ended. */
  live: Transcript | null
  /** The `seq` after which events are wanted. */
  after: number
  /** Fires when the reader disconnects or berth stops. */
  gone: AbortSignal
  send: SendEvent
}

/**
 * Sends the events of a transcript. While the task runs, it continues with new events and with output as it is
 * printed, until the task has ended or the reader disconnects. A slow reader misses no event; it may miss pieces of
 * output, which a later event contains in full.
 */
export async function followTranscript({
  taskId,
  records,
  live,
  after,
  gone,
  send,
}: Following): Promise<void> {
  let last = after
  const tell = async (event: TaskEvent): Promise<void> => {
    if (event.seq <= last) return
    await send(event.type, event, String(event.seq))
    last = event.seq
  }
  const events = async (): Promise<void> => {
    for (;;) {
      const page = records.events(taskId, last, PAGE)
      for (const event of page) {
        if (gone.aborted) return
        await tell(event)
      }
      if (page.length < PAGE) return
    }
  }
  if (live === null) return events()
  const queue = new Waiting()
  const leave = live.watch(queue)
  const wake = (): void => queue.end()
  gone.addEventListener('abort', wake)
  try {
    while (!gone.aborted) {
      if (queue.behind) {
        // Nothing can come between the last look and this: all of it happens at once.
        await events()
        if (records.events(taskId, last, 1).length > 0) continue
        queue.caughtUp(live.underWay)
      }
      const next = queue.take()
      if (next === undefined) {
        if (queue.over) break
        await queue.more()
      } else if ('seq' in next) await tell(next)
      else await send(next.type, next)
    }
    await events()
    if (queue.last !== undefined && !gone.aborted) await tell(queue.last)
  } finally {
    gone.removeEventListener('abort', wake)
    leave()
  }
}

/** Items that wait for one reader. */
class Waiting implements Watcher {
  #items: Array<TaskEvent | ShownDelta> = []
  #size = 0
  #wake: () => void = () => {}
  /** Pieces of output that the reader was given, while the output is under way. */
  #given = new WeakSet<ShownDelta>()
  /** Whether events must be read from the database first. */
  behind = true
  over = false
  /** The final event, which is not in the database. */
  last: TaskEvent | undefined

  event(event: TaskEvent): void {
    this.#push(event)
  }

  delta(delta: ShownDelta): void {
    this.#push(delta)
  }

  end(last?: TaskEvent): void {
    this.over = true
    this.last ??= last
    this.#wake()
  }

  /** All events were read; `deltas` is the output under way. */
  caughtUp(deltas: readonly ShownDelta[]): void {
    this.behind = false
    this.#items = deltas.filter((delta) => !this.#given.has(delta))
    this.#size = this.#items.reduce((sum, item) => sum + sizeOf(item), 0)
  }

  take(): TaskEvent | ShownDelta | undefined {
    const item = this.#items.shift()
    if (item === undefined) return undefined
    this.#size -= sizeOf(item)
    if (!('seq' in item)) this.#given.add(item)
    return item
  }

  /** Resolves when something may be there. */
  more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
      if (this.over || this.behind || this.#items.length > 0) resolve()
    })
  }

  #push(item: TaskEvent | ShownDelta): void {
    this.#wake()
    if (this.behind) return
    this.#items.push(item)
    this.#size += sizeOf(item)
    if (this.#size <= MOST_WAITING) return
    this.#items = []
    this.#size = 0
    this.behind = true
  }
}

/** About as many characters as it takes to send. */
const sizeOf = (item: TaskEvent | ShownDelta): number =>
  'seq' in item ? JSON.stringify(item).length : item.text.length
