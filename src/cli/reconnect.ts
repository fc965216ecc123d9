import { pause } from '../runtime/wait.ts'
import { CommandError, NO_CONNECTION } from './errors.ts'
import { paint } from './output.ts'
import { toPlainText } from './plain-text.ts'
import type { OutputStream } from './process-context.ts'

/** Milliseconds before the next attempt to reach the instance, by number of failures. The last one repeats. */
const RETRY_DELAYS_MS = [0, 50, 100, 200, 500] as const

/** A stream of an instance, to follow across restarts and resets. */
interface FollowedStream<Connection, Item> {
  readonly connection: Connection
  /**
   * Connects again after a failure. The instance may have a new address after a restart, and none of the earlier items
   * after a reset.
   */
  readonly reconnect: () => Promise<Connection>
  /** Yields the items that are new since the last one. */
  readonly stream: (connection: Connection) => AsyncIterable<Item>
  readonly signal: AbortSignal
}

/** An item of a followed stream, or a change of its connection. */
export type Followed<Connection, Item> =
  | { readonly type: 'item'; readonly item: Item; readonly connection: Connection }
  /** The connection was lost, for this reason. Reported after the second failure, because a reset takes less time. */
  | { readonly type: 'lost'; readonly reason: string }
  /** The stream continues on another connection. `wasLost` is whether `lost` was reported before. */
  | { readonly type: 'reconnected'; readonly wasLost: boolean; readonly connection: Connection }

/**
 * Yields the items of a stream until `signal` aborts. Reconnects after each failure and each end of the stream.
 *
 * @throws CommandError for a failure that is not temporary; the signal's reason if it aborts
 */
export async function* followStream<Connection, Item>({
  connection: first,
  reconnect,
  stream,
  signal,
}: FollowedStream<Connection, Item>): AsyncGenerator<Followed<Connection, Item>, void> {
  let [connection, failures, isLost] = [first, 0, false]
  for (;;) {
    try {
      if (failures > 0) {
        connection = await reconnect()
        yield { type: 'reconnected', wasLost: isLost, connection }
        ;[failures, isLost] = [0, false]
      }
      for await (const item of stream(connection)) yield { type: 'item', item, connection }
      failures += 1
    } catch (error) {
      if (signal.aborted || !isTransient(error, failures)) throw error
      failures += 1
      if (!isLost && failures > 1) {
        isLost = true
        yield { type: 'lost', reason: error.message }
      }
    }
    await waitBeforeRetry(failures, signal)
  }
}

/** How to repeat what failed because the instance was unreachable. */
interface Retry {
  /** Connects again. The instance may have a new address after a restart. */
  readonly reconnect: () => Promise<void>
  /** Called with the reason once the instance is lost, and with null when it is back. */
  readonly report: (reason: string | null) => Promise<void>
  readonly signal: AbortSignal
}

/**
 * Runs a function, and again once the instance is back if that was unreachable.
 *
 * @returns the function's result
 * @throws the function's error that is not temporary; the signal's reason if it aborts
 */
export async function retryUntilBack<Result>(
  run: () => Promise<Result>,
  { reconnect, report, signal }: Retry,
): Promise<Result> {
  for (let failures = 0; ; ) {
    let isReached = failures === 0
    try {
      if (!isReached) await reconnect()
      isReached = true
      const result = await run()
      if (failures > 0) await report(null)
      return result
    } catch (error) {
      // An error without a code is temporary only where no instance was found.
      if (signal.aborted || !isTransient(error, isReached ? 0 : failures)) throw error
      failures += 1
      if (failures === 1) await report(error.message)
    }
    await waitBeforeRetry(failures, signal)
  }
}

/**
 * Returns a function that prints why the connection to the instance was lost, or with null that it is restored.
 *
 * @param timeOf returns the time that lines begin with; by default they begin with none
 */
export const connectionReporter =
  (stderr: OutputStream, timeOf?: () => string) =>
  (reason: string | null): Promise<void> => {
    const notice =
      reason === null ? 'The instance is back.' : `${toPlainText(reason)} Waiting until it is back.`
    const text = paint(stderr, reason === null ? 'green' : 'yellow', `berth: ${notice}\n`)
    return stderr.write(timeOf === undefined ? text : `${timeOf()}  ${text}`)
  }

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
  await pause(RETRY_DELAYS_MS[Math.min(failures, RETRY_DELAYS_MS.length) - 1] ?? 0, signal)
  signal.throwIfAborted()
}
