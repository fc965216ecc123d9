import { useState } from 'preact/hooks'
import { API_OPERATION_IDS } from '../../../contract/operations.ts'
import { Button } from '../../components/button.tsx'
import { SelectField } from '../../components/field.tsx'
import { CommandLines } from '../../components/http.tsx'
import { Loaded, Section } from '../../components/page.tsx'
import { useDashboard } from '../../dashboard.ts'
import { type Fault, isSpent } from '../../store/store.ts'
import {
  EFFECTS,
  effectWords,
  type FaultCreate,
  FaultDialog,
  faultLine,
  type NewFaultMatch,
} from '../requests/fault-dialog.tsx'

/** Returns the place of an effect among those of the dialog. */
const effectAt = (field: string, status?: number): number =>
  EFFECTS.findIndex(
    ({ effect }) =>
      field in effect &&
      (status === undefined ||
        ('error' in effect && effect.error.status === status) ||
        ('respond' in effect && effect.respond.status === status)),
  )

/** The faults that tests ask for most. */
const TEMPLATES = [
  { name: '429', index: effectAt('error', 429) },
  { name: '502 as HTML', index: effectAt('respond', 502) },
  { name: 'Slow', index: effectAt('delay_ms') },
  { name: 'Cut off', index: effectAt('truncate') },
  { name: 'Lost response', index: effectAt('lose_response') },
] as const

/** The faults that are set, with how often each has applied. */
export function FaultControls() {
  const { api, store } = useDashboard()
  const [begun, setBegun] = useState<number | null>(null)
  return (
    <Section
      title="Faults"
      actions={
        <>
          <Button icon="plus" onClick={() => setBegun(0)}>
            Set a fault
          </Button>
          {store.faults.list.value.length > 0 && (
            <Button
              look="danger"
              onClick={async () => {
                await api.call('control.faults.clear')
                await store.faults.load()
              }}
            >
              Remove all
            </Button>
          )}
        </>
      }
    >
      {begun !== null && <SetFault initial={begun} onClose={() => setBegun(null)} />}
      <p class="actions templates">
        {TEMPLATES.map(({ name, index }) => (
          <Button key={name} onClick={() => setBegun(index)}>
            {name}
          </Button>
        ))}
      </p>
      <Loaded of={store.faults}>
        {(faults) =>
          faults.length === 0 ? (
            <p class="quiet">
              None is set. Take one of these, or open a <a href="/dashboard/requests">request</a> and make a
              fault of it.
            </p>
          ) : (
            <FaultList faults={faults} />
          )
        }
      </Loaded>
    </Section>
  )
}

/** Faults of requests, with how often each has applied: those that still may apply first, then the spent ones. */
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
              <strong>{effectWords(fault.effect)}</strong> on <code>{matchOf(fault)}</code>{' '}
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

/** How often a fault has applied, with a link to its requests as far as they are still known. */
function Hits({ of: { id, hits, times, match } }: { of: Fault }) {
  const { store } = useDashboard()
  const most = times === null ? '' : ` of at most ${times}`
  if (hits === 0)
    return <>Has not applied yet{times !== null && `, at most ${times === 1 ? 'once' : `${times} times`}`}</>
  const text = `${hits === 1 ? 'Applied once' : `Applied ${hits} times`}${most}`
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

/** The choice of deliveries among the operations. */
const DELIVERIES = 'deliveries'

/** Asks which requests are to fail, how and how often, and sets that fault. */
function SetFault({ initial, onClose }: { initial: number; onClose: () => void }) {
  const { store } = useDashboard()
  const accounts = store.accounts.open().list.value
  const [operation, setOperation] = useState('')
  const [accountId, setAccountId] = useState('')
  const match = {
    ...(operation === DELIVERIES ? { deliveries: {} } : operation !== '' && { operation }),
    ...(accountId !== '' && { account_id: accountId }),
  } as NewFaultMatch
  return (
    <FaultDialog title="Set a fault" match={match} initial={initial} onClose={onClose}>
      <SelectField
        name="operation"
        label="Requests"
        hint="The dashboard's own requests meet no fault that does not name them."
        value={operation}
        onValue={setOperation}
        choices={[
          { value: '', label: 'all requests' },
          { value: DELIVERIES, label: 'deliveries to webhooks' },
          ...[...API_OPERATION_IDS].map((id) => ({ value: id, label: id })),
        ]}
      />
      {accounts.length > 1 && (
        <SelectField
          name="account"
          label="Account"
          value={accountId}
          onValue={setAccountId}
          choices={[
            { value: '', label: 'every account' },
            ...accounts.map(({ id, label }) => ({ value: id, label: label || id })),
          ]}
        />
      )}
    </FaultDialog>
  )
}
