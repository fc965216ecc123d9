import { ConnectionError } from './errors.js'
import type { Change } from './shapes.js'
import type { Transport } from './transport.js'

/**
 * Reads the changes of everything that a credential reaches, without end. After a lost connection it connects again, and a change of
 * the type `gap` says that some were missed.
 *
 * @throws ConnectionError if it cannot connect again
 */
export async function* changesOf(transport: Transport, signal?: AbortSignal): AsyncGenerator<Change> {
  let failures = 0
  let isFirst = true
  while (true) {
    try {
      for await (const { data } of transport.events({ path: '/changes', signal }, { resumes: false })) {
        const change = JSON.parse(data) as Change
        yield change.type === 'ready' && !isFirst ? { type: 'gap' } : change
        isFirst = false
        failures = 0
      }
    } catch (error) {
      if (!(error instanceof ConnectionError) || failures++ >= transport.options.retries) throw error
    }
    signal?.throwIfAborted()
  }
}
