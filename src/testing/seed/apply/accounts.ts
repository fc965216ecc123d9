import { accountCaller } from '../../../http/caller.ts'
import type { FixtureEntry } from '../fixture-entry.ts'
import { FIRST_ACCOUNT } from '../references.ts'
import type { AccountFixture } from '../resolve.ts'
import type { ApplyContext } from './context.ts'

/** Creates and updates accounts, each with its first key. */
export async function applyAccounts(context: ApplyContext): Promise<void> {
  recordFirstAccount(context)
  for (const one of context.fixtures.accounts) {
    const id = context.accountId(one.name)
    await one.run(() => (id === undefined ? create(context, one) : update(context, one, id)))
  }
}

/** Sets the used credits after everything that costs credits exists: servers at the cap go to sleep. */
export async function setCreditsUsed(context: ApplyContext): Promise<void> {
  const { fixtures, accounts } = context
  for (const one of fixtures.accounts) {
    const { credits_used } = one.value
    const id = context.accountId(one.name)
    if (credits_used === undefined || id === undefined) continue
    await one.run(() => accounts.update(id, { credits_used }), 'credits_used')
  }
}

/** Records the first account under its name, so that its id can be looked up. */
function recordFirstAccount(context: ApplyContext): void {
  const { services, firstKey } = context
  const id = context.accountId()
  if (id !== undefined) context.recordExisting('account', FIRST_ACCOUNT, id)
  const ids = firstKey === null ? undefined : services.keys.idsOf(firstKey)
  if (ids) context.recordExisting('account_key', FIRST_ACCOUNT, ids.keyId)
}

function create(context: ApplyContext, { name, value }: FixtureEntry<AccountFixture>): void {
  const { accounts, services } = context
  const { label = name, plan, budget_cap } = value
  const params = { label, ...(plan ? { plan } : {}), ...(budget_cap === undefined ? {} : { budget_cap }) }
  const { id, api_key } = accounts.create(params, value.key)
  context.recordCreated('account', name, id, () => accounts.delete(id))
  const ids = services.keys.idsOf(api_key)
  if (ids) context.recordExisting('account_key', name, ids.keyId)
}

async function update(
  context: ApplyContext,
  { name, value }: FixtureEntry<AccountFixture>,
  id: string,
): Promise<void> {
  const { accounts, services } = context
  const { label, plan, budget_cap, credits_used } = value
  await accounts.update(id, {
    ...(label === undefined ? {} : { label }),
    ...(plan === undefined ? {} : { plan }),
    ...(budget_cap === undefined ? {} : { budget_cap }),
    // Makes room in the budget for missing servers; `setCreditsUsed` sets the amount again at the end.
    ...(credits_used !== undefined && services.metering.isCapped(id) ? { credits_used: 0 } : {}),
  })
  if (value.key !== undefined) updateKey(context, name, id, value.key)
}

function updateKey(context: ApplyContext, name: string, accountId: string, key: string): void {
  const { services, records } = context
  const caller = accountCaller(accountId)
  const keyId = records.find('account_key', name)?.id
  const present = services.keys.list(caller).find(({ id }) => id === keyId)
  if (present) {
    services.keys.change(caller, present.id, { label: present.label, key })
    return
  }
  const { id } = services.keys.create(caller, { label: 'First key' }, key)
  context.recordCreated('account_key', name, id, () => services.keys.delete(caller, id))
}
