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

/** The longest time, in milliseconds, that the system's timers take. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Waits `ms` milliseconds of real time, or until one of the signals aborts. */
export async function pause(ms: number, ...signals: readonly AbortSignal[]): Promise<void> {
  const signal = AbortSignal.any([...signals])
  if (signal.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  using _abort = onAbort(signal, resolve)
  await promise
  clearTimeout(timer)
}

/**
 * Waits for a promise, at most `ms` milliseconds of real time and until a signal aborts.
 *
 * @returns what the promise resolves to, or `late`
 * @throws what the promise rejects with
 */
export async function within<T, Late>(
  ms: number,
  promise: Promise<T>,
  late: Late,
  signal?: AbortSignal,
): Promise<T | Late> {
  const { promise: over, resolve } = Promise.withResolvers<Late>()
  const timer = setTimeout(resolve, ms, late)
  using _abort = signal && onAbort(signal, () => resolve(late))
  try {
    return await Promise.race([promise, over])
  } finally {
    clearTimeout(timer)
  }
}
