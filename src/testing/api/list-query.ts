import { t } from 'elysia'
import { integer, oneOf } from '../../contract/schema.ts'

/** The value of `after` for the position before the first item. */
export const START = 'start'

/** Returns the query fields of a list that can also be a stream: `limit` and `follow`. */
export const streamFields = (limit: { default: number; most: number }) => ({
  limit: t.Optional(
    integer({
      minimum: 1,
      maximum: limit.most,
      description: `At most so many; ${limit.default} where nothing is said, in a stream any number.`,
    }),
  ),
  follow: t.Optional(
    oneOf(['true', 'false'], {
      description: 'A stream of those to come, as `Accept: text/event-stream` asks too.',
    }),
  ),
})

/** Whether requests are shown with their bodies. */
export const BODIES = t.Optional(
  oneOf(['true', 'false'], {
    description: '`false` leaves the bodies of requests and of their responses out.',
  }),
)

/** How many are read at a time for a stream. */
const PAGE_SIZE = 100

/** A source of numbered items for a stream. */
interface ItemSource<Item extends { readonly seq: number }> {
  /** Has a listener called when there may be more. @returns a function that ends this */
  subscribe(listener: () => void): () => void
  /** Returns up to `most` items after a position, in order. */
  after(seq: number, most: number): readonly Item[]
  /**
   * Sends an item.
   *
   * @returns whether it matched; others do not count against the limit
   */
  send(item: Item): Promise<boolean>
  /** The position behind which it begins. */
  from: number
  /** Number of items after which the stream ends. */
  limit?: number | undefined
}

/** Streams all items after a position, each once, until `ended` fires. */
export async function streamItems<Item extends { readonly seq: number }>(
  { subscribe, after, send, from, limit = Number.POSITIVE_INFINITY }: ItemSource<Item>,
  ended: AbortSignal,
): Promise<void> {
  let next = Promise.withResolvers<void>()
  const wake = (): void => next.resolve()
  const unsubscribe = subscribe(wake)
  ended.addEventListener('abort', wake)
  try {
    for (let [position, left] = [from, limit]; !ended.aborted && left > 0; ) {
      next = Promise.withResolvers<void>()
      const items = after(position, PAGE_SIZE)
      for (const item of items) {
        if (ended.aborted || left === 0) return
        if (await send(item)) left -= 1
        position = item.seq
      }
      if (items.length === 0) await next.promise
    }
  } finally {
    unsubscribe()
    ended.removeEventListener('abort', wake)
  }
}
