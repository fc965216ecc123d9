import { BerthError } from '../../errors.ts'

/** The result of a check. */
export interface WaitCheck {
  /** Whether the subject has reached the state. */
  matched: boolean
  /** Returns the fields of the response. */
  show: () => Record<string, unknown>
}

/** The result of a wait. */
interface WaitResult {
  matched: boolean
  shown: Record<string, unknown>
}

/** Options of a wait. */
interface WaitOptions {
  /**
   * Checks the subject now.
   *
   * @throws BerthError 404 if it was deleted
   */
  check: () => WaitCheck
  /** Sources that notify of possible changes. */
  sources: readonly { subscribe(listener: () => void): () => void }[]
  /** Milliseconds of real time, so a frozen clock cannot hold up the wait. */
  timeoutMs: number
  /** Fires when berth stops or is reset. */
  stopping: AbortSignal
  /** Fires when the client disconnects. */
  disconnected: AbortSignal
}

/**
 * Repeats a check after every possible change, until it matches or the time is over.
 *
 * @returns the last result
 * @throws whatever `check` throws, and BerthError 503 if berth stops
 */
export function waitUntil({
  check,
  sources,
  timeoutMs,
  stopping,
  disconnected,
}: WaitOptions): Promise<WaitResult> {
  const { promise, resolve, reject } = Promise.withResolvers<WaitResult>()
  const tryCheck = (last: boolean): void => {
    try {
      const { matched, show } = check()
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
  const unsubscribe = sources.map((source) => source.subscribe(() => tryCheck(false)))
  const timer = setTimeout(() => tryCheck(true), timeoutMs)
  for (const signal of [stopping, disconnected]) signal.addEventListener('abort', stop)
  if (stopping.aborted || disconnected.aborted) stop()
  else tryCheck(timeoutMs === 0)
  return promise.finally(() => {
    clearTimeout(timer)
    for (const end of unsubscribe) end()
    for (const signal of [stopping, disconnected]) signal.removeEventListener('abort', stop)
  })
}
