import { BerthError } from '../errors.ts'

/** What ends a wait from outside. */
export interface WaitEnds {
  readonly signal: AbortSignal
  /** Calls its argument if the caller's credential changes or ends, until the returned function is called. */
  readonly whileValid: (ended: () => void) => () => void
}

/** Returns the error of a request whose credential was ended while it waited. */
export const endedCredential = (): BerthError =>
  new BerthError(
    'missing_or_invalid_api_key',
    'The credential of this request was ended, or its scope was changed, while it waited.',
  )

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
  /** As in `WaitEnds`; without it the credential does not matter. */
  whileValid?: WaitEnds['whileValid']
}

/**
 * Repeats a check after every possible change, until it matches or the time is over.
 *
 * @returns the last result
 * @throws whatever `check` throws, and BerthError 503 if berth stops, 401 if the credential ends
 */
export function waitUntil({
  check,
  sources,
  timeoutMs,
  stopping,
  disconnected,
  whileValid,
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
  const unsubscribe = [
    ...(whileValid ? [whileValid(() => reject(endedCredential()))] : []),
    ...sources.map((source) => source.subscribe(() => tryCheck(false))),
  ]
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

/** Notifies of changes, and of the end of berth, for requests that wait for an object to settle. */
export interface SettleSources {
  readonly changes: { subscribe(listener: () => void): () => void }
  /** Fires when berth stops or is reset. */
  readonly stopping: AbortSignal
}

/**
 * Reads an object, again after each change until it has settled or the time is over.
 *
 * @throws whatever `read` throws, and BerthError 503 if berth stops, 401 if the credential ends
 */
export async function readSettled<Value>(
  read: () => Value,
  isSettled: (value: Value) => boolean,
  { changes, stopping }: SettleSources,
  {
    request,
    query,
    whileValid,
  }: { request: Request; query: { wait_ms?: number } } & Pick<WaitEnds, 'whileValid'>,
): Promise<Value> {
  let value = read()
  if (query.wait_ms === undefined || isSettled(value)) return value
  await waitUntil({
    check() {
      value = read()
      return { matched: isSettled(value), show: () => ({}) }
    },
    sources: [changes],
    timeoutMs: query.wait_ms,
    stopping,
    disconnected: request.signal,
    whileValid,
  })
  return value
}
