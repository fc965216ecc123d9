import { BerthError } from '../../errors.ts'

/** What was seen of something that is waited for. */
export interface Look {
  /** Whether it is as it is waited for. */
  matched: boolean
  /** What an answer tells of it. */
  show: () => Record<string, unknown>
}

/** What came of waiting. */
export interface Seen {
  matched: boolean
  shown: Record<string, unknown>
}

/** Something that is waited for. */
export interface Waiting {
  /** Looks at it as it is now. @throws BerthError 404 where it is gone */
  look: () => Look
  /** What tells that it may have changed. */
  news: readonly { subscribe(listener: () => void): () => void }[]
  /** Physical milliseconds: a clock that stands must not hold it up. */
  timeoutMs: number
  /** Fires when berth stops, or begins anew. */
  stopping: AbortSignal
  /** Fires when whoever waits has gone. */
  gone: AbortSignal
}

/**
 * Looks at something whenever it may have changed, until it is as it is waited for.
 *
 * @returns what was seen then, or at the end of the time
 * @throws whatever `look` throws, BerthError 503 where berth stops
 */
export function waitUntil({ look, news, timeoutMs, stopping, gone }: Waiting): Promise<Seen> {
  const { promise, resolve, reject } = Promise.withResolvers<Seen>()
  const check = (last: boolean): void => {
    try {
      const { matched, show } = look()
      if (matched || last) resolve({ matched, shown: show() })
    } catch (error) {
      reject(error)
    }
  }
  const stop = (): void =>
    reject(
      new BerthError(
        'service_unavailable',
        'berth stops or begins anew: there is nothing to wait for any more.',
      ),
    )
  const unsubscribe = news.map((source) => source.subscribe(() => check(false)))
  const timer = setTimeout(() => check(true), timeoutMs)
  for (const signal of [stopping, gone]) signal.addEventListener('abort', stop)
  if (stopping.aborted || gone.aborted) stop()
  else check(timeoutMs === 0)
  return promise.finally(() => {
    clearTimeout(timer)
    for (const end of unsubscribe) end()
    for (const signal of [stopping, gone]) signal.removeEventListener('abort', stop)
  })
}
