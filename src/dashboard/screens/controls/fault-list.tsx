import { Button } from '../../components/button.tsx'
import { CommandLines } from '../../components/command-lines.tsx'
import { useDashboard } from '../../dashboard.ts'
import { type Fault, isSpent } from '../../store/store.ts'
import { effectText, type FaultCreate, faultLine } from '../requests/effects.ts'

/** Faults of requests, with how often each has struck: those that still may, then those that are spent. */
export function FaultList({ faults }: { faults: readonly Fault[] }) {
  const { api, router, store } = useDashboard()
  const chosen = router.query.value.get('fault')
  const remove = async ({ id }: Fault): Promise<void> => {
    await api.call('control.faults.delete', { params: { faultId: id } })
    store.faults.remove(id)
  }
  return (
    <ul class="cards">
      {[...faults.filter((fault) => !isSpent(fault)), ...faults.filter(isSpent)].map((fault) => (
        <li class={`card${chosen === fault.id ? ' current' : ''}`} key={fault.id}>
          <div class="card-main">
            <p class={isSpent(fault) ? 'quiet' : ''}>
              <strong>{effectText(fault.effect)}</strong> on <code>{matchOf(fault)}</code>{' '}
              {isSpent(fault) && <span class="chip">spent</span>}
            </p>
            <p class="quiet">
              <Hits of={fault} />
            </p>
            <CommandLines
              berth={faultLine(givenOf(fault))}
              method="POST"
              path="/_berth/faults"
              body={givenOf(fault)}
            />
          </div>
          {isSpent(fault) && (
            <Button
              icon="restart"
              onClick={async () => {
                store.faults.add(await api.call('control.faults.add', { body: givenOf(fault) }))
                await remove(fault)
              }}
            >
              Arm again
            </Button>
          )}
          <Button look="danger" onClick={() => remove(fault)}>
            Remove
          </Button>
        </li>
      ))}
    </ul>
  )
}

/** How often a fault has struck, with the way to what it struck as far as that is still known. */
function Hits({ of: { id, hits, times, match } }: { of: Fault }) {
  const { store } = useDashboard()
  const most = times === null ? '' : ` of at most ${times}`
  if (hits === 0)
    return <>Has not struck yet{times !== null && `, at most ${times === 1 ? 'once' : `${times} times`}`}</>
  const text = `${hits === 1 ? 'Struck once' : `Struck ${hits} times`}${most}`
  if (match.deliveries) return <a href="/dashboard/webhooks">{text}</a>
  const { state, list, hasOlder } = store.requests.open()
  // The journal is shorter than the life of a fault: a restart, a reset and a restore empty it.
  const isKnown =
    state.value !== 'ready' ||
    hasOlder.value ||
    list.value.some(({ faults }) => faults.some(({ fault_id: one }) => one === id))
  return isKnown ? (
    <a href={`/dashboard/requests?fault=${id}&own=1`}>{text}</a>
  ) : (
    <span title="A restart, a reset and a restore empty the journal of requests.">
      {text}, of which the journal has no request
    </span>
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
