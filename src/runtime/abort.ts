/**
 * Calls `listener` when a signal aborts, until the returned object is disposed of. A signal that has aborted already
 * never calls it.
 */
export function onAbort(signal: AbortSignal, listener: () => void): Disposable {
  signal.addEventListener('abort', listener)
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', listener) }
}

/**
 * Waits for a promise, unless a signal aborts first.
 *
 * @throws the signal's reason, or what the promise rejects with
 */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  using _listener = onAbort(signal, abort)
  if (signal.aborted) abort()
  return await Promise.race([promise, aborted.promise])
}
