import type { ResponseOf } from '../../client/client.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { isTransient, waitBeforeRetry } from '../reconnect.ts'

/** An event, as the control API gives it. */
export type EmittedEvent = ResponseOf<'control.events.list'>['events'][number]

/** The position before the first event. */
const START = 'start'

/** Earlier events that are remembered, so that none is yielded twice after a restored snapshot. */
const REMEMBERED = 1_000

/** A connection to the instance. */
export interface EventConnection {
  client: Client
  /** The secret that signs forwarded events. */
  secret: string
}

/** What `berth listen` receives. */
export type ListenEvent =
  /** Events that are emitted from here on are yielded. */
  | { readonly type: 'ready'; readonly connection: EventConnection }
  | { readonly type: 'event'; readonly event: EmittedEvent; readonly connection: EventConnection }
  /** The instance cannot be reached any more, for this reason. */
  | { readonly type: 'lost'; readonly reason: string }
  /** The instance can be reached again. */
  | { readonly type: 'back'; readonly connection: EventConnection }
  /** It was reset, or an earlier state was restored: its events begin anew. */
  | { readonly type: 'anew'; readonly connection: EventConnection }

/** Which events are followed, and where. */
export interface FollowOptions {
  /** Finds the instance; it may have come back at another address. */
  connect: () => Promise<EventConnection>
  accountId: string | undefined
  signal: AbortSignal
}

/**
 * Yields every event from now on until `signal` fires: in order, none twice and none left out, also over a stop and start
 * or a reset of the instance.
 *
 * @throws CommandError where the instance cannot be reached at the beginning, or does not take the credential any more
 */
export async function* followEvents(
  connection: EventConnection,
  { connect, accountId, signal }: FollowOptions,
): AsyncGenerator<ListenEvent, void> {
  const position = await EventPosition.now(connection.client, signal)
  yield { type: 'ready', connection }
  let [current, failures, isLost] = [connection, 0, false]
  for (;;) {
    try {
      if (failures > 0) {
        current = await connect()
        const isAnew = await position.check(current.client, signal)
        failures = 0
        if (isLost) yield { type: 'back', connection: current }
        if (isAnew) yield { type: 'anew', connection: current }
        isLost = false
      }
      const query = { follow: 'true', after: position.last, account_id: accountId } as const
      for await (const { data: event } of current.client.stream('control.events.list', { query, signal })) {
        position.advance(event.id)
        yield { type: 'event', event, connection: current }
      }
      failures += 1
    } catch (error) {
      if (signal.aborted || !isTransient(error, failures)) throw error
      failures += 1
      // A reset is over before the next attempt: it is worth no word.
      if (!isLost && failures > 1) {
        isLost = true
        yield { type: 'lost', reason: error.message }
      }
    }
    await waitBeforeRetry(failures, signal)
  }
}

/** How far the events have been yielded. */
class EventPosition {
  /** The last one. */
  last = START
  readonly #known: Set<string>

  private constructor(ids: readonly string[]) {
    this.#known = new Set(ids)
    this.last = ids.at(-1) ?? START
  }

  /** Behind everything that was emitted so far. */
  static async now(client: Client, signal: AbortSignal): Promise<EventPosition> {
    return new EventPosition((await newestIds(client, signal)).reverse())
  }

  /** Moves behind an event that was yielded. */
  advance(id: string): void {
    this.last = id
    this.#known.add(id)
    if (this.#known.size <= 2 * REMEMBERED) return
    for (const old of [...this.#known].slice(0, REMEMBERED)) this.#known.delete(old)
  }

  /**
   * Checks whether the instance still knows the last event. If it does not, the position moves to the newest event that
   * the instance still has and that was yielded, or before all of them.
   *
   * @returns whether its events have begun anew
   */
  async check(client: Client, signal: AbortSignal): Promise<boolean> {
    try {
      await client.call('control.events.list', { query: { after: this.last, limit: 1 }, signal })
      return false
    } catch (error) {
      if (!(error instanceof CommandError) || error.code !== 'bad_request') throw error
    }
    const ids = await newestIds(client, signal)
    this.last = ids.find((id) => this.#known.has(id)) ?? START
    return true
  }
}

/** Ids of the last events, newest first. */
async function newestIds(client: Client, signal: AbortSignal): Promise<string[]> {
  const query = { limit: REMEMBERED }
  const { events } = await client.call('control.events.list', { query, signal })
  return events.map(({ id }) => id)
}
