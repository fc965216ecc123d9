import { t } from 'elysia'
import { flagSchema, integer } from '../../contract/schema.ts'
import { badRequest } from '../../errors.ts'
import { resumedStart, type StreamStart } from '../../http/sse.ts'

/** The value of `after` for the position before the first item. */
export const START = 'start'

/** The positions of the kept items of a list. */
export interface Positions {
  /** What one of them is, as in `an event`. */
  readonly one: string
  /** Returns the position of an item by its id; undefined if it is not kept. */
  find(id: string): number | undefined
  /** Returns the position of the newest item; 0 if there is none. */
  newest(): number
}

/**
 * Returns the position that `after` names; undefined if it is missing.
 *
 * @throws BerthError 400 if no item has this id
 */
export function positionOf(after: string | undefined, { one, find }: Positions): number | undefined {
  if (after === undefined) return undefined
  const position = after === START ? 0 : find(after)
  if (position !== undefined) return position
  throw badRequest(
    `"after" in the query: expected the id of ${one}, or ${START}, got ${JSON.stringify(after)}.`,
  )
}

/** The part of a list between two positions, without these; undefined for no bound. */
export interface ListRange {
  readonly after: number | undefined
  readonly before: number | undefined
}

/**
 * Returns the part of a list that `after` or `before` asks for.
 *
 * @throws BerthError 400 if no item has the id, and for both
 */
export function rangeOf(
  { after, before }: { after?: string; before?: string },
  positions: Positions,
): ListRange {
  if (before === undefined) return { after: positionOf(after, positions), before }
  if (after !== undefined)
    throw badRequest('"after" and "before" in the query exclude each other: give one of them.')
  const position = positions.find(before)
  if (position !== undefined) return { after, before: position }
  throw badRequest(
    `"before" in the query: expected the id of ${positions.one}, got ${JSON.stringify(before)}.`,
  )
}

/** The field of a query for the page of a list that comes after another one: of older items. */
export const BEFORE = t.Optional(
  t.String({
    description:
      'Only what came before the one of this id: the last of a page gives the next page. Not with `after`, nor in a stream.',
  }),
)

/**
 * Returns where a stream of a list begins: where a client that reconnects has lost it, else behind `after`, else behind
 * the newest item.
 *
 * @throws BerthError 400 if no item has the id in `after`, and for `before`
 */
export async function streamStart(
  request: Request,
  { after, before }: { after?: string; before?: string },
  positions: Positions,
): Promise<StreamStart> {
  if (before !== undefined)
    throw badRequest(
      '"before" in the query is for a list: a stream begins behind "after", or with what is new.',
    )
  const resumed = await resumedStart(request, positions.find)
  if (resumed === null) return { from: positionOf(after, positions) ?? positions.newest(), hasGap: false }
  // The item in the URL, which is that of the first request, may be gone by now.
  const least = after === undefined ? 0 : (positions.find(after) ?? 0)
  return { ...resumed, from: Math.max(resumed.from, least) }
}

/** Returns the query fields of a list that can also be a stream: `limit` and `follow`. */
export const streamFields = (limit: { default: number; most: number }) => ({
  limit: t.Optional(
    integer({
      minimum: 1,
      maximum: limit.most,
      description: `At most so many; ${limit.default} where nothing is said, in a stream any number.`,
    }),
  ),
  follow: t.Optional(flagSchema('A stream of those to come, as `Accept: text/event-stream` asks too.')),
})

/** Whether requests are shown with their bodies. */
export const BODIES = t.Optional(
  flagSchema('`false` leaves the bodies of requests and of their responses out.'),
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
