import { CommandError, NO_CONNECTION } from './errors.ts'

/** Milliseconds before the next attempt to reach the instance, by number of failures. The last one repeats. */
const RETRY_DELAYS_MS = [0, 50, 100, 200, 500] as const

/** Reports whether a failure is temporary: the instance is unreachable, stopping or starting. */
export function isTransient(error: unknown, failures: number): error is CommandError {
  if (!(error instanceof CommandError)) return false
  if (error.code === NO_CONNECTION || error.code === 'service_unavailable') return true
  // Between a stop and the next start, the data directory names no instance.
  return error.code === undefined && failures > 0
}

/**
 * Waits before the next attempt.
 *
 * @param failures number of consecutive failed attempts, at least 1
 * @throws the signal's reason if it aborts
 */
export async function waitBeforeRetry(failures: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, RETRY_DELAYS_MS[Math.min(failures, RETRY_DELAYS_MS.length) - 1] ?? 0)
  const end = (): void => resolve()
  signal.addEventListener('abort', end, { once: true })
  await promise
  clearTimeout(timer)
  signal.removeEventListener('abort', end)
  signal.throwIfAborted()
}
