import { CommandError, NO_CONNECTION } from './errors.ts'

/** Milliseconds before the next attempt to reach the instance, from one failure to the next; the last one stays. */
const RETRY_DELAYS_MS = [0, 50, 100, 200, 500] as const

/** Whether a failure may pass: the instance is gone for now, or on its way down or up. */
export function isTransient(error: unknown, failures: number): error is CommandError {
  if (!(error instanceof CommandError)) return false
  if (error.code === NO_CONNECTION || error.code === 'service_unavailable') return true
  // Where it stops, the directory says of no instance any more until the next starts.
  return error.code === undefined && failures > 0
}

/**
 * Waits before the next attempt.
 *
 * @param failures attempts that have failed one after the other; from 1
 * @throws the signal's reason as soon as it fires
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
