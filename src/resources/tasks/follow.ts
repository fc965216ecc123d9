import type { SendEvent } from '../../http/sse.ts'
import type { TaskEvent } from './model.ts'
import type { TaskRecords } from './records.ts'
import type { PositionedDelta, Transcript, TranscriptListener } from './transcript.ts'

/** Most events read from the database at a time. Limits memory: events can be long and readers many. */
const PAGE_SIZE = 16

/**
 * Most characters queued for a slow reader. Beyond that, it reads events from the database, without deltas.
 * @bound client
 */
const MAX_QUEUED = 1024 * 1024

/** The options of `followTranscript`. */
interface FollowOptions {
  taskId: string
  records: TaskRecords
  /** The transcript of the running task; null if the task has ended. */
  transcript: Transcript | null
  /** Sends the events after this `seq`. */
  after: number
  /** Fires when the reader disconnects or berth stops. */
  signal: AbortSignal
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
  transcript,
  after,
  signal,
  send,
}: FollowOptions): Promise<void> {
  let lastSeq = after
  const sendEvent = async (event: TaskEvent): Promise<void> => {
    if (event.seq <= lastSeq) return
    await send(event.type, event, String(event.seq))
    lastSeq = event.seq
  }
  const sendStored = async (): Promise<void> => {
    for (;;) {
      const page = records.listEvents(taskId, lastSeq, PAGE_SIZE)
      for (const event of page) {
        if (signal.aborted) return
        await sendEvent(event)
      }
      if (page.length < PAGE_SIZE) return
    }
  }
  if (transcript === null) return sendStored()
  const queue = new EventQueue()
  const unsubscribe = transcript.subscribe(queue)
  const wake = (): void => queue.end()
  signal.addEventListener('abort', wake)
  try {
    while (!signal.aborted) {
      if (queue.isBehind) {
        // No event can be added between this query and `catchUp`: nothing is awaited.
        await sendStored()
        if (records.listEvents(taskId, lastSeq, 1).length > 0) continue
        queue.catchUp(transcript.pendingDeltas)
      }
      const next = queue.take()
      if (next === undefined) {
        if (queue.hasEnded) break
        await queue.waitForItem()
      } else if ('seq' in next) await sendEvent(next)
      else await send(next.type, next)
    }
    await sendStored()
    if (queue.lastEvent !== undefined && !signal.aborted) await sendEvent(queue.lastEvent)
  } finally {
    signal.removeEventListener('abort', wake)
    unsubscribe()
  }
}

/** Queues the items for one reader. */
class EventQueue implements TranscriptListener {
  #items: Array<TaskEvent | PositionedDelta> = []
  #size = 0
  #wake: () => void = () => {}
  /** Deltas that were sent to the reader. */
  #sent = new WeakSet<PositionedDelta>()
  /** Whether events must be read from the database first. */
  isBehind = true
  hasEnded = false
  /** The final event, which is not in the database. */
  lastEvent: TaskEvent | undefined

  event(event: TaskEvent): void {
    this.#push(event)
  }

  delta(delta: PositionedDelta): void {
    this.#push(delta)
  }

  end(last?: TaskEvent): void {
    this.hasEnded = true
    this.lastEvent ??= last
    this.#wake()
  }

  /** Continues with new items, after all stored events were read. Queues the pending `deltas` not sent yet. */
  catchUp(deltas: readonly PositionedDelta[]): void {
    this.isBehind = false
    this.#items = deltas.filter((delta) => !this.#sent.has(delta))
    this.#size = this.#items.reduce((sum, item) => sum + sizeOf(item), 0)
  }

  take(): TaskEvent | PositionedDelta | undefined {
    const item = this.#items.shift()
    if (item === undefined) return undefined
    this.#size -= sizeOf(item)
    if (!('seq' in item)) this.#sent.add(item)
    return item
  }

  /** Resolves when an item may be available. */
  waitForItem(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
      if (this.hasEnded || this.isBehind || this.#items.length > 0) resolve()
    })
  }

  #push(item: TaskEvent | PositionedDelta): void {
    this.#wake()
    if (this.isBehind) return
    this.#items.push(item)
    this.#size += sizeOf(item)
    if (this.#size <= MAX_QUEUED) return
    this.#items = []
    this.#size = 0
    this.isBehind = true
  }
}

/** Estimates the characters of an item when sent. */
const sizeOf = (item: TaskEvent | PositionedDelta): number =>
  'seq' in item ? JSON.stringify(item).length : item.text.length
