import type { PartsOf, ResponseOf } from '../../route-client/client.ts'
import type { Client } from '../client.ts'
import { followStream } from '../reconnect.ts'

/** A request in the journal. */
export type FollowedRequest = ResponseOf<'control.requests.list'>['requests'][number]

/** The requests to follow. */
interface FollowOptions {
  /** Connects to the instance, which may have a new address after a restart. */
  connect: () => Promise<Client>
  /** Filter of the control API. */
  query: PartsOf<'control.requests.list'>['query']
  signal: AbortSignal
  /** Called with the reason when the connection is lost, and with null when it is restored. */
  onConnectionChange: (reason: string | null) => Promise<void>
}

/**
 * Yields every new request until `signal` aborts, across restarts and resets of the instance.
 *
 * @throws CommandError if the instance cannot be reached at first, or no longer accepts the credential
 */
export async function* followRequests({
  connect,
  query,
  signal,
  onConnectionChange,
}: FollowOptions): AsyncGenerator<FollowedRequest, void> {
  const connection = await connect()
  let lastEventId = await newestRequestId(connection, signal)
  const followed = followStream({
    connection,
    reconnect: connect,
    stream: (client) => {
      const followQuery = { ...query, follow: 'true', after: 'start' } as const
      return client.stream('control.requests.list', { query: followQuery, lastEventId, signal })
    },
    signal,
  })
  for await (const one of followed) {
    if (one.type === 'item') {
      // A start and a reset clear the journal: what follows the gap is new.
      if (one.item.event === 'gap') continue
      lastEventId = one.item.data.id
      yield one.item.data
    } else if (one.type === 'lost') await onConnectionChange(one.reason)
    else if (one.wasLost) await onConnectionChange(null)
  }
}

/** Returns the id of the last request; undefined if there is none. */
async function newestRequestId(client: Client, signal: AbortSignal): Promise<string | undefined> {
  const query = { limit: 1, bodies: 'false' } as const
  const { requests } = await client.call('control.requests.list', { query, signal })
  return requests[0]?.id
}

/** Reports whether the instance has more than one account. */
export async function hasSeveralAccounts(client: Client): Promise<boolean> {
  const { accounts } = await client.call('control.accounts.list')
  return accounts.length > 1
}
