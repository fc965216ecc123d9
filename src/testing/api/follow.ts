/** How many are read at a time for a stream. */
const AT_ONCE = 100

/** Things that come one after the other, and where they are told. */
export interface Following<Item extends { readonly seq: number }> {
  /** Has a listener called when there may be more. @returns ends it */
  subscribe(listener: () => void): () => void
  /** The next ones behind a position, at most so many, in order. */
  after(seq: number, most: number): readonly Item[]
  /** Tells of one. @returns whether it was one that is wanted */
  tell(item: Item): Promise<boolean>
  /** The position behind which it begins. */
  from: number
  /** How many are told before it ends. */
  limit?: number | undefined
}

/** Tells of all that come behind a position, each once, until `ended` fires. */
export async function followAll<Item extends { readonly seq: number }>(
  { subscribe, after, tell, from, limit = Number.POSITIVE_INFINITY }: Following<Item>,
  ended: AbortSignal,
): Promise<void> {
  let next = Promise.withResolvers<void>()
  const wake = (): void => next.resolve()
  const unsubscribe = subscribe(wake)
  ended.addEventListener('abort', wake)
  try {
    for (let [position, left] = [from, limit]; !ended.aborted && left > 0; ) {
      next = Promise.withResolvers<void>()
      const items = after(position, AT_ONCE)
      for (const item of items) {
        if (ended.aborted || left === 0) return
        if (await tell(item)) left -= 1
        position = item.seq
      }
      if (items.length === 0) await next.promise
    }
  } finally {
    unsubscribe()
    ended.removeEventListener('abort', wake)
  }
}
