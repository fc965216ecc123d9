import type { PartsOf, ResponseOf } from '../../contract/client.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { isPassing, pauseBefore } from '../reconnect.ts'

/** A request as the journal shows it. */
export type JournalEntry = ResponseOf<'control.requests.list'>['requests'][number]

/** Which requests are followed, and where. */
export interface Following {
  /** Finds the instance; it may have come back at another address. */
  open: () => Promise<Client>
  /** Which ones, as the control API takes it. */
  query: PartsOf<'control.requests.list'>['query']
  signal: AbortSignal
  /** The instance is gone for now, for this reason, or, with null, back. */
  onChange: (reason: string | null) => Promise<void>
}

/**
 * Tells every request from now on, also where the instance is stopped and started or reset meanwhile. It goes on until
 * `signal` fires.
 *
 * @throws CommandError where the instance cannot be reached at the beginning, or does not take the credential any more
 */
export async function* followRequests({
  open,
  query,
  signal,
  onChange,
}: Following): AsyncGenerator<JournalEntry, void> {
  let client = await open()
  let [last, failures, lost] = [await newest(client, signal), 0, false]
  for (;;) {
    try {
      if (failures > 0) {
        client = await open()
        // A journal begins anew with a start and with a reset.
        if (!(await knows(client, last, signal))) last = 'start'
        if (lost) await onChange(null)
        ;[failures, lost] = [0, false]
      }
      const asked = { ...query, follow: 'true', after: last } as const
      for await (const { data } of client.stream('control.requests.list', { query: asked, signal })) {
        last = data.id
        yield data
      }
      failures += 1
    } catch (error) {
      if (signal.aborted || !isPassing(error, failures)) throw error
      failures += 1
      if (!lost && failures > 1) {
        lost = true
        await onChange(error.message)
      }
    }
    await pauseBefore(failures, signal)
  }
}

/** The id of the last request; `start` where there is none. */
async function newest(client: Client, signal: AbortSignal): Promise<string> {
  const query = { limit: 1 }
  const { requests } = await client.call('control.requests.list', { query, signal })
  return requests[0]?.id ?? 'start'
}

async function knows(client: Client, id: string, signal: AbortSignal): Promise<boolean> {
  try {
    await client.call('control.requests.list', { query: { after: id, limit: 1 }, signal })
    return true
  } catch (error) {
    if (error instanceof CommandError && error.code === 'bad_request') return false
    throw error
  }
}
