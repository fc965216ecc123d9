import { useState } from 'preact/hooks'
import { useDashboard } from '../../dashboard.ts'
import type { JournalRequest } from '../../store/store.ts'
import { EFFECTS } from './effects.ts'
import { pathOf } from './facts.ts'
import { FaultDialog, type FaultMatch } from './fault-dialog.tsx'

/** Asks how requests like one are to fail, and sets that fault. */
export function MakeFault({ request, onClose }: { request: JournalRequest; onClose: () => void }) {
  const { store } = useDashboard()
  const { method, operation, account_id: accountId } = request
  const path = pathOf(request)
  const [isExact, setExact] = useState(true)
  const [isOfAccount, setOfAccount] = useState(false)
  const match = {
    ...(isExact || operation === null ? { method, path } : { operation }),
    ...(isOfAccount && accountId !== null && { account_id: accountId }),
  } as FaultMatch
  return (
    <FaultDialog title="Make a fault of it" match={match} initial={initialOf(request)} onClose={onClose}>
      <fieldset class="choice column">
        <legend>Which requests</legend>
        <label>
          <input type="radio" name="match" checked={isExact} onChange={() => setExact(true)} />
          <span>
            <span class="method">{method}</span> <bdi>{path}</bdi>
          </span>
        </label>
        {operation !== null && (
          <label>
            <input type="radio" name="match" checked={!isExact} onChange={() => setExact(false)} />
            <span>
              all of <code>{operation}</code>
            </span>
          </label>
        )}
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
    </FaultDialog>
  )
}

/** Returns the effect that is the nearest to what became of a request. */
function initialOf({ status, aborted }: JournalRequest): number {
  if (aborted) return EFFECTS.findIndex(({ effect }) => 'delay_ms' in effect)
  const same = EFFECTS.findIndex(({ effect }) => 'error' in effect && effect.error.status === status)
  return same < 0 ? 1 : same
}
