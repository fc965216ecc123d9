import { useState } from 'preact/hooks'
import { API_OPERATIONS, listOperations } from '../../../contract/operations.ts'
import { Button } from '../../components/button.tsx'
import { SelectField } from '../../components/field.tsx'
import { Loaded, Section } from '../../components/page.tsx'
import { span } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Fault, Server, ServerFaults } from '../../store/store.ts'
import { FaultList } from '../controls/faults.tsx'
import { FaultDialog, type NewFaultMatch } from '../requests/fault-dialog.tsx'
import { SERVER_FAULTS, ServerFaultDialog } from './fault-dialog.tsx'

/** The faults inside the server, and those of requests about it. */
export const FaultsTab = ({ server }: { server: Server }) => (
  <div class="server-faults">
    <Inside server={server} />
    <OfRequests server={server} />
  </div>
)

/** Shows the faults inside a server on every part of its screen, and removes them. */
export function ServerFaultNotices({ server: { id } }: { server: Server }) {
  const { api, store } = useDashboard()
  const faults = store
    .serverFaults(id)
    .open()
    .list.value.flatMap((known) => known.faults)
  return (
    <>
      {faults.map((fault) => {
        const { label, about } = SERVER_FAULTS[fault.kind]
        const params = { serverId: id, kind: fault.kind }
        return (
          <div class="notice fault-notice" role="status" key={fault.kind}>
            <p>
              <strong>{label} on purpose:</strong> {detailOf(fault) || about}
            </p>
            <span class="actions">
              <a href={`/dashboard/servers/${id}/faults`}>Show</a>
              <Button onClick={() => api.call('control.serverFaults.lift', { params })}>End it</Button>
            </span>
          </div>
        )
      })}
    </>
  )
}

/** The faults inside the server. */
function Inside({ server }: { server: Server }) {
  const { api, store } = useDashboard()
  const [isMaking, setMaking] = useState(false)
  const { id, status } = server
  const params = { serverId: id }
  const faults = store.serverFaults(id)
  const active = faults.list.value.flatMap(({ faults }) => faults)
  const isAsleep = status === 'sleeping'
  return (
    <Section
      title="Inside the server"
      actions={
        <>
          {active.length > 1 && (
            <Button look="danger" onClick={() => api.call('control.serverFaults.clear', { params })}>
              Lift all
            </Button>
          )}
          <Button icon="plus" disabled={isAsleep} onClick={() => setMaking(true)}>
            Make something fail
          </Button>
        </>
      }
    >
      <Loaded of={faults}>
        {() =>
          active.length === 0 ? (
            <p class="quiet">
              {isAsleep
                ? 'The server sleeps: nothing of it runs that could fail.'
                : 'Nothing goes wrong. A crash, no memory, a full disk, a hang and a bad network can be had here.'}
            </p>
          ) : (
            <ul class="cards">
              {active.map((fault) => (
                <li class="card" key={fault.kind}>
                  <div class="card-main">
                    <p>
                      <strong>{SERVER_FAULTS[fault.kind].label}</strong>
                      {detailOf(fault) !== '' && `: ${detailOf(fault)}`}
                    </p>
                    <p class="quiet">{lastingOf(fault)}</p>
                  </div>
                  <Button
                    look="danger"
                    label={`Lift ${SERVER_FAULTS[fault.kind].label.toLowerCase()}`}
                    onClick={() =>
                      api.call('control.serverFaults.lift', { params: { ...params, kind: fault.kind } })
                    }
                  >
                    Lift
                  </Button>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {isMaking && <ServerFaultDialog server={server} onClose={() => setMaking(false)} />}
    </Section>
  )
}

/** The faults of requests that may apply to one about the server. */
function OfRequests({ server }: { server: Server }) {
  const { store, context } = useDashboard()
  const [isMaking, setMaking] = useState(false)
  return (
    <Section
      title="Requests about it"
      actions={
        <Button icon="plus" onClick={() => setMaking(true)}>
          Set a fault
        </Button>
      }
    >
      <Loaded of={store.faults}>
        {(all) => {
          const faults = all.filter((fault) => mayStrike(fault, server.id, context.account.id))
          return faults.length === 0 ? (
            <p class="quiet">No fault that is set may apply to one.</p>
          ) : (
            <FaultList faults={faults} />
          )
        }}
      </Loaded>
      {isMaking && <RequestFaultDialog server={server} onClose={() => setMaking(false)} />}
    </Section>
  )
}

type ServerFault = ServerFaults['faults'][number]

/** Returns the details of a fault beyond its kind. */
function detailOf(fault: ServerFault): string {
  const { delay_ms: delay, latency_ms: latency, jitter_ms: jitter, loss, hosts } = fault
  return [
    delay !== undefined && `${span(delay)} each`,
    fault.offline && 'nothing passes',
    fault.refused && 'connections are refused',
    latency !== undefined && `${latency}${jitter === undefined ? '' : ` ± ${jitter}`} ms later`,
    latency === undefined && jitter !== undefined && `up to ${jitter} ms later`,
    loss !== undefined && `${Math.round(loss * 1_000) / 10} % lost`,
    hosts && `with ${hosts.join(', ')}`,
  ]
    .filter(Boolean)
    .join(', ')
}

/** Returns how long a fault lasts. */
function lastingOf({ times, times_left: left, for_ms: duration }: ServerFault): string {
  const limits = [
    times !== undefined && `for ${left ?? times} more of ${times} commands`,
    duration !== undefined && `for ${span(duration)} since it was made`,
  ].filter(Boolean)
  return limits.length === 0 ? 'Lasts until it is lifted, or the server stops' : `Lasts ${limits.join(', ')}`
}

/** Reports whether a fault may apply to a request about a server. */
function mayStrike({ match }: Fault, serverId: string, accountId: string): boolean {
  const { operation, path, account_id: account, deliveries } = match
  const served = operation && API_OPERATIONS[operation as keyof typeof API_OPERATIONS]
  return (
    deliveries === undefined &&
    (account === undefined || account === accountId) &&
    (served === undefined || served.includes('{serverId}')) &&
    (path === undefined || leadsTo(path, ['servers', serverId]))
  )
}

/** Reports whether a path, or a glob of paths, has some that begin with these segments. */
function leadsTo(glob: string, segments: readonly string[]): boolean {
  const given = glob.split('/').slice(1)
  return segments.every((segment, at) => {
    const one = given[at]
    if (given.slice(0, at).some((before) => before.includes('**'))) return true
    if (one === undefined) return false
    const parts = one.split(/\*+|\{[^{}]*\}/).map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    return new RegExp(`^${parts.join('.*')}$`).test(segment)
  })
}

/** The operations on a server. */
const OPERATIONS = listOperations(API_OPERATIONS).filter(({ path }) => path.includes('{serverId}'))

/** Asks which requests about a server are to fail, and how. */
function RequestFaultDialog({ server, onClose }: { server: Server; onClose: () => void }) {
  const [chosen, setChosen] = useState('')
  const operation = OPERATIONS.find(({ id }) => id === chosen)
  const match = {
    ...(operation && { method: operation.method }),
    path: operation ? operation.path.replace('{serverId}', server.id) : `/servers/${server.id}**`,
  } as NewFaultMatch
  return (
    <FaultDialog title="Set a fault" match={match} initial={1} onClose={onClose}>
      <SelectField
        name="operation"
        label="Which requests about the server"
        value={chosen}
        onValue={setChosen}
        choices={[{ value: '', label: 'All' }, ...OPERATIONS.map(({ id }) => ({ value: id, label: id }))]}
      />
    </FaultDialog>
  )
}
