import { useState } from 'preact/hooks'
import type { PartsOf } from '../../../client/client.ts'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { JournalRequest } from '../../store/store.ts'
import { pathOf } from './facts.ts'

type FaultCreate = PartsOf<'control.faults.add'>['body']
type FaultEffect = FaultCreate['effect']

/** What a fault may do. */
const EFFECTS: readonly { label: string; effect: FaultEffect; flag: string }[] = [
  { label: '429 too many requests', effect: { error: { status: 429 } }, flag: '--error 429' },
  { label: '500 internal error', effect: { error: { status: 500 } }, flag: '--error 500' },
  { label: '502 bad gateway', effect: { error: { status: 502 } }, flag: '--error 502' },
  { label: '503 unavailable', effect: { error: { status: 503 } }, flag: '--error 503' },
  { label: 'Slow: 5 s later', effect: { delay_ms: 5_000 }, flag: '--delay 5s' },
  { label: 'Cut off: no response', effect: { disconnect: true }, flag: '--disconnect' },
  { label: 'Compute fails', effect: { backend: 'fail' }, flag: '--backend-fail' },
]

const TIMES = [
  { label: 'once', times: 1 },
  { label: '3 times', times: 3 },
  { label: 'each time', times: undefined },
] as const

/** Asks how requests like one are to fail, and sets that fault. */
export function MakeFault({ request, onClose }: { request: JournalRequest; onClose: () => void }) {
  const { api, notices, store } = useDashboard()
  const { method, operation, account_id: accountId } = request
  const path = pathOf(request)
  const [isExact, setExact] = useState(operation === null)
  const [chosen, setChosen] = useState(initialOf(request))
  const [often, setOften] = useState(0)
  const [isOfAccount, setOfAccount] = useState(false)
  const effect = EFFECTS[chosen] ?? EFFECTS[0]
  const times = TIMES[often]?.times
  if (!effect) return null
  const match = {
    ...(isExact || operation === null
      ? { method, path }
      : { operation: operation as FaultCreate['match']['operation'] }),
    ...(isOfAccount && accountId !== null && { account_id: accountId }),
  } as FaultCreate['match']
  const body: FaultCreate = { match, effect: effect.effect, ...(times !== undefined && { times }) }
  const words = [
    'berth faults add',
    ...(isExact ? ['--method', method, '--path', quoted(path)] : ['--operation', operation ?? '']),
    ...(match.account_id === undefined ? [] : ['--account', match.account_id]),
    effect.flag,
    ...(times === undefined ? [] : ['--times', String(times)]),
  ]
  const set = async (): Promise<void> => {
    const fault = await api.call('control.faults.add', { body })
    store.faults.add(fault)
    notices.done('The fault is set.', {
      label: 'Remove it',
      run: () =>
        void notices.attempt(async () => {
          await api.call('control.faults.delete', { params: { faultId: fault.id } })
          store.faults.remove(fault.id)
        }),
    })
  }
  return (
    <FormDialog
      title="Make a fault of it"
      action="Set the fault"
      onSubmit={set}
      onClose={onClose}
      commands={<CommandLines berth={words.join(' ')} method="POST" path="/_berth/faults" body={body} />}
    >
      <fieldset class="choice column">
        <legend>Which requests</legend>
        {operation !== null && (
          <label>
            <input type="radio" name="match" checked={!isExact} onChange={() => setExact(false)} />
            <span>
              all of <code>{operation}</code>
            </span>
          </label>
        )}
        <label>
          <input type="radio" name="match" checked={isExact} onChange={() => setExact(true)} />
          <span>
            <span class="method">{method}</span> <bdi>{path}</bdi>
          </span>
        </label>
        {accountId !== null && (
          <label>
            <input
              type="checkbox"
              checked={isOfAccount}
              onChange={({ currentTarget }) => setOfAccount(currentTarget.checked)}
            />
            only of the account <bdi>{store.accounts.get(accountId)?.label || accountId}</bdi>
          </label>
        )}
      </fieldset>
      <fieldset class="choice column">
        <legend>What happens to them</legend>
        {EFFECTS.map(({ label }, index) => (
          <label key={label}>
            <input type="radio" name="effect" checked={chosen === index} onChange={() => setChosen(index)} />
            {label}
          </label>
        ))}
      </fieldset>
      <fieldset class="choice">
        <legend>How often</legend>
        {TIMES.map(({ label }, index) => (
          <label key={label}>
            <input type="radio" name="times" checked={often === index} onChange={() => setOften(index)} />
            {label}
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}

/** Returns the effect that is the nearest to what became of a request. */
function initialOf({ status, aborted }: JournalRequest): number {
  if (aborted) return EFFECTS.findIndex(({ effect }) => 'delay_ms' in effect)
  const same = EFFECTS.findIndex(({ effect }) => 'error' in effect && effect.error.status === status)
  return same < 0 ? 1 : same
}
