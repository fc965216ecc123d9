import type { ResponseOf } from '../../route-client/client.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { followStream } from '../reconnect.ts'

/** An event of the control API. */
export type ListenedEvent = ResponseOf<'control.events.list'>['events'][number]

/** The position before the first event. */
const START = 'start'

/** Number of earlier events to remember, which prevents duplicates after a snapshot was restored. */
const REMEMBERED = 1_000

/** A connection to the instance. */
export interface EventConnection {
  client: Client
  /** Secret that signs forwarded events. */
  secret: string
}

/** An item that `berth listen` receives. */
export type ListenEvent =
  /** The connection is open. Events from now on follow. */
  | { readonly type: 'ready'; readonly connection: EventConnection }
  | { readonly type: 'event'; readonly event: ListenedEvent; readonly connection: EventConnection }
  /** The connection was lost, for this reason. */
  | { readonly type: 'lost'; readonly reason: string }
  /** The connection was restored. */
  | { readonly type: 'back'; readonly connection: EventConnection }
  /** The instance was reset, or an earlier state was restored: its events start again. */
  | { readonly type: 'anew'; readonly connection: EventConnection }

/** The events to follow. */
export interface ListenedStream {
  /** Connects to the instance, which may have a new address after a restart. */
  connect: () => Promise<EventConnection>
  accountId: string | undefined
  signal: AbortSignal
}

/**
 * Yields every new event until `signal` aborts, in order, each exactly once, across restarts and resets of the
 * instance.
 *
 * @throws CommandError if the instance cannot be reached at first, or no longer accepts the credential
 */
export async function* followEvents(
  connection: EventConnection,
  { connect, accountId, signal }: ListenedStream,
): AsyncGenerator<ListenEvent, void> {
  const position = await EventPosition.now(connection.client, signal)
  yield { type: 'ready', connection }
  let isAnew = false
  const followed = followStream({
    connection,
    async reconnect() {
      const current = await connect()
      isAnew = await position.check(current.client, signal)
      return current
    },
    stream: ({ client }) => {
      const query = { follow: 'true', after: position.last, account_id: accountId } as const
      return client.stream('control.events.list', { query, signal })
    },
    signal,
  })
  for await (const one of followed) {
    if (one.type === 'lost') yield one
    else if (one.type === 'item') {
      const { data: event } = one.item
      position.advance(event.id)
      yield { type: 'event', event, connection: one.connection }
    } else {
      if (one.wasLost) yield { type: 'back', connection: one.connection }
      if (isAnew) yield { type: 'anew', connection: one.connection }
    }
  }
}

/** The position in the sequence of events. */
class EventPosition {
  /** Id of the last event that was yielded. */
  last = START
  readonly #known: Set<string>

  private constructor(ids: readonly string[]) {
    this.#known = new Set(ids)
    this.last = ids.at(-1) ?? START
  }

  /** Returns the position after all existing events. */
  static async now(client: Client, signal: AbortSignal): Promise<EventPosition> {
    return new EventPosition((await newestIds(client, signal)).reverse())
  }

  /** Moves after an event that was yielded. */
  advance(id: string): void {
    this.last = id
    this.#known.add(id)
    if (this.#known.size <= 2 * REMEMBERED) return
    for (const old of [...this.#known].slice(0, REMEMBERED)) this.#known.delete(old)
  }

  /**
   * Checks whether the instance still has the last event. If not, moves to the newest of its events that was yielded,
   * or before all of them.
   *
   * @returns whether its events have started again
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

/** Returns the ids of the last events, newest first. */
async function newestIds(client: Client, signal: AbortSignal): Promise<string[]> {
  const query = { limit: REMEMBERED }
  const { events } = await client.call('control.events.list', { query, signal })
  return events.map(({ id }) => id)
}
