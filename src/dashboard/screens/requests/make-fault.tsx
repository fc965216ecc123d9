import { useMemo, useState } from 'preact/hooks'
import { useDashboard } from '../../dashboard.ts'
import type { WholeRequest } from '../../store/store.ts'
import { EFFECTS, type OfferedEffect } from './effects.ts'
import { pathOf } from './facts.ts'
import { FaultDialog, type FaultMatch } from './fault-dialog.tsx'

/** Asks how requests like one are to fail, and sets that fault. */
export function MakeFault({ request, onClose }: { request: WholeRequest; onClose: () => void }) {
  const { store } = useDashboard()
  const { method, operation, account_id: accountId } = request
  const path = pathOf(request)
  const [isExact, setExact] = useState(true)
  const [isOfAccount, setOfAccount] = useState(false)
  const match = {
    ...(isExact || operation === null ? { method, path } : { operation }),
    ...(isOfAccount && accountId !== null && { account_id: accountId }),
  } as FaultMatch
  const effects = useMemo(() => [...sameResponse(request), ...EFFECTS], [request])
  return (
    <FaultDialog
      title="Make a fault of it"
      match={match}
      effects={effects}
      initial={initialOf(request, effects)}
      onClose={onClose}
    >
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

/** Returns the effect that gives what a request was given; none where the journal has not all of its body. */
function sameResponse(request: WholeRequest): OfferedEffect[] {
  const { status, response, response_type: type, response_headers: headers } = request
  const isWhole = response === null ? type === null : response.body !== null && !response.truncated
  if (!isWhole || status < 200) return []
  const retryAfter = headers['retry-after']
  const respond = {
    status,
    ...(type !== null && { content_type: type }),
    ...(retryAfter !== undefined && { headers: { 'retry-after': retryAfter } }),
    ...(response && {
      body: typeof response.body === 'string' ? response.body : JSON.stringify(response.body),
    }),
  }
  return [{ label: `The same response: ${status}`, effect: { respond } }]
}

/** Returns the place of the effect that is the nearest to what became of a request. */
function initialOf({ status, aborted }: WholeRequest, effects: readonly OfferedEffect[]): number {
  const place = (isNear: (effect: OfferedEffect['effect']) => boolean): number =>
    effects.findIndex(({ effect }) => isNear(effect))
  const withStatus = (wanted: number): number =>
    place(
      (effect) =>
        ('respond' in effect && effect.respond.status === wanted) ||
        ('error' in effect && effect.error.status === wanted),
    )
  if (aborted) return place((effect) => 'delay_ms' in effect)
  const same = status < 400 ? -1 : withStatus(status)
  return same < 0 ? withStatus(500) : same
}
