import { Button } from '../../components/button.tsx'
import { CommandLines } from '../../components/command-lines.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Fault } from '../../store/store.ts'
import { effectText, type FaultCreate, faultLine } from '../requests/effects.ts'

/** Faults of requests, with how often each has struck. */
export function FaultList({ faults }: { faults: readonly Fault[] }) {
  const { api, router, store } = useDashboard()
  const chosen = router.query.value.get('fault')
  return (
    <ul class="cards">
      {faults.map((fault) => (
        <li class={`card${chosen === fault.id ? ' current' : ''}`} key={fault.id}>
          <div class="card-main">
            <p>
              <strong>{effectText(fault.effect)}</strong> on <code>{matchOf(fault)}</code>
            </p>
            <p class="quiet">
              {fault.hits === 0 ? (
                'Has not struck yet'
              ) : (
                <a
                  href={
                    fault.match.deliveries
                      ? '/dashboard/webhooks'
                      : `/dashboard/requests?fault=${fault.id}&own=1`
                  }
                >
                  {fault.hits === 1 ? 'Struck once' : `Struck ${fault.hits} times`}
                </a>
              )}
              {fault.times !== null && `, at most ${fault.times}`}
            </p>
            <CommandLines
              berth={faultLine(givenOf(fault))}
              method="POST"
              path="/_berth/faults"
              body={givenOf(fault)}
            />
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

/** Returns a fault as it was set. */
const givenOf = ({ match, effect, times, after, probability, seed }: Fault): FaultCreate => ({
  match,
  effect,
  ...(times !== null && { times }),
  ...(after > 0 && { after }),
  ...(probability < 1 && { probability }),
  ...(seed !== null && { seed }),
})

/** Which requests a fault matches. */
function matchOf({ match }: Fault): string {
  const { operation, method, path, account_id: account, client, deliveries } = match
  const sent = deliveries && [
    'deliveries',
    deliveries.event && `of ${deliveries.event}`,
    deliveries.webhook_id && `to ${deliveries.webhook_id}`,
  ]
  const parts = [...(sent ?? []), operation, method, path, account, client && `from the ${client}`].filter(
    (part) => part !== undefined,
  )
  return parts.length === 0 ? 'every request' : parts.join(' ')
}
