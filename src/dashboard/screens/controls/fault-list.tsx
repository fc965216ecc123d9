import { Button } from '../../components/button.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Fault } from '../../store/store.ts'

/** Faults of requests, with how often each has struck. */
export function FaultList({ faults }: { faults: readonly Fault[] }) {
  const { api, store } = useDashboard()
  return (
    <ul class="cards">
      {faults.map((fault) => (
        <li class="card" key={fault.id}>
          <div class="card-main">
            <p>
              <strong>{effectOf(fault)}</strong> on <code>{matchOf(fault)}</code>
            </p>
            <p class="quiet">
              {fault.hits === 1 ? 'Struck once' : `Struck ${fault.hits} times`}
              {fault.times !== null && `, at most ${fault.times}`}
            </p>
          </div>
          <Button
            look="danger"
            onClick={async () => {
              await api.call('control.faults.delete', { params: { faultId: fault.id } })
              store.faults.remove(fault.id)
            }}
          >
            Remove
          </Button>
        </li>
      ))}
    </ul>
  )
}

/** What a fault does, in words. */
function effectOf({ effect }: Fault): string {
  if ('error' in effect) return `${effect.error.status} ${effect.error.code ?? ''}`.trim()
  if ('delay_ms' in effect) return `${effect.delay_ms} ms later`
  if ('respond' in effect) return `${effect.respond.status} ${effect.respond.content_type ?? ''}`.trim()
  if ('truncate' in effect) return `Cut off after ${effect.truncate.bytes} bytes`
  if ('lose_response' in effect) return 'Lost response'
  return 'disconnect' in effect ? 'No response' : 'Compute fails'
}

/** Which requests a fault matches. */
function matchOf({ match }: Fault): string {
  const { operation, method, path, account_id: account, client } = match
  const parts = [operation, method, path, account, client && `from the ${client}`].filter(
    (part) => part !== undefined,
  )
  return parts.length === 0 ? 'every request' : parts.join(' ')
}
