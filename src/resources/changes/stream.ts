import type { NotifiedChange } from '../../runtime/change-notifier.ts'

/** Milliseconds in which the changes of one object become one message. */
const COALESCE_MS = 20

/** Most changed objects that wait for a slow reader. With more, the reader is sent a gap instead. @bound client */
const MOST_WAITING = 10_000

/** Messages after which other work of berth gets its turn. */
const TURN = 50

/**
 * A message without an object: the stream has begun; the reader has missed changes and has to load everything; the whole
 * state was replaced.
 */
export type StreamSignal = { readonly type: 'ready' | 'gap' | 'reset' }

/** A message about an object. */
export interface ChangeMessage<Type extends string = string> {
  readonly type: Type
  readonly id: string
  /** The server that the object lies on. */
  readonly server_id?: string
  /** The object as its GET returns it; null if it is gone. */
  readonly value: unknown
}

/** Sends a message to the reader of a stream. Resolves when it can take more. */
export type SendMessage = (message: ChangeMessage | StreamSignal) => Promise<void> | void

/** What a stream is made of. */
export interface ChangeSource<Type extends string> {
  /** Passes on every change that the reader may see. @returns a function that ends this */
  watch(watcher: (change: NotifiedChange<Type>) => void): () => void
  /** Returns the message about an object as it is now; undefined for none. */
  read(change: NotifiedChange<Type>): Promise<ChangeMessage | undefined> | ChangeMessage | undefined
}

/**
 * Streams changed objects until `ended` fires. Each is read when it is sent, so a reader that is slow gets the newest
 * state and costs the memory of the ids that wait. Nothing is replayed.
 *
 * @throws what `read` throws
 */
export async function streamChanges<Type extends string>(
  { watch, read }: ChangeSource<Type>,
  send: SendMessage,
  ended: AbortSignal,
): Promise<void> {
  /** Objects that have changed since the last turn, by type and id, and those that are being sent. */
  let waiting = new Map<string, NotifiedChange<Type>>()
  let due = new Map<string, NotifiedChange<Type>>()
  let hasGap = false
  let next = Promise.withResolvers<void>()
  const wake = (): void => next.resolve()
  const unwatch = watch((change) => {
    if (hasGap) return
    const key = `${change.type} ${change.id}`
    // It is read later anyway.
    if (due.has(key) || waiting.has(key)) return
    if (due.size + waiting.size >= MOST_WAITING) {
      hasGap = true
      due.clear()
      waiting.clear()
    } else waiting.set(key, change)
    wake()
  })
  ended.addEventListener('abort', wake)
  try {
    await send({ type: 'ready' })
    while (!ended.aborted) {
      if (!hasGap && waiting.size === 0) await next.promise
      if (ended.aborted) return
      next = Promise.withResolvers<void>()
      await Bun.sleep(COALESCE_MS)
      if (hasGap) {
        hasGap = false
        await send({ type: 'gap' })
      }
      due = waiting
      waiting = new Map()
      let sent = 0
      for (const [key, change] of due) {
        due.delete(key)
        const message = await read(change)
        if (ended.aborted) return
        if (message !== undefined) await send(message)
        sent += 1
        if (sent % TURN === 0) await new Promise((resolve) => setImmediate(resolve))
      }
    }
  } finally {
    unwatch()
    ended.removeEventListener('abort', wake)
  }
}
