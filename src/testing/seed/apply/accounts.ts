import { accountCaller } from '../../../http/caller.ts'
import type { Declared } from '../declared.ts'
import { FIRST_ACCOUNT } from '../references.ts'
import type { AccountFixture } from '../settle.ts'
import type { Applying } from './applying.ts'

/** Makes and mends accounts, with the key that comes with each. */
export async function applyAccounts(applying: Applying): Promise<void> {
  noteFirst(applying)
  for (const one of applying.fixtures.accounts) {
    const id = applying.accountId(one.name)
    await one.telling(() => (id === undefined ? make(applying, one) : mend(applying, one, id)))
  }
}

/** Says what accounts have used, when all that costs is there: servers at the cap go to sleep. */
export async function settleCredits(applying: Applying): Promise<void> {
  const { fixtures, accounts } = applying
  for (const one of fixtures.accounts) {
    const { credits_used } = one.value
    const id = applying.accountId(one.name)
    if (credits_used === undefined || id === undefined) continue
    await one.telling(() => accounts.update(id, { credits_used }), 'credits_used')
  }
}

/** The first account has a name too, for whoever looks for its id. */
function noteFirst(applying: Applying): void {
  const { services, firstKey } = applying
  const id = applying.accountId()
  if (id !== undefined) applying.note('account', FIRST_ACCOUNT, id)
  const ids = firstKey === null ? undefined : services.keys.idsOf(firstKey)
  if (ids) applying.note('account_key', FIRST_ACCOUNT, ids.keyId)
}

function make(applying: Applying, { name, value }: Declared<AccountFixture>): void {
  const { accounts, services } = applying
  const { label = name, plan, budget_cap } = value
  const wishes = { label, ...(plan ? { plan } : {}), ...(budget_cap === undefined ? {} : { budget_cap }) }
  const { id, api_key } = accounts.create(wishes, value.key)
  applying.keep('account', name, id, () => accounts.delete(id))
  const ids = services.keys.idsOf(api_key)
  if (ids) applying.note('account_key', name, ids.keyId)
}

async function mend(
  applying: Applying,
  { name, value }: Declared<AccountFixture>,
  id: string,
): Promise<void> {
  const { accounts, services } = applying
  const { label, plan, budget_cap, credits_used } = value
  await accounts.update(id, {
    ...(label === undefined ? {} : { label }),
    ...(plan === undefined ? {} : { plan }),
    ...(budget_cap === undefined ? {} : { budget_cap }),
    // Room for what is missing; what the account has used is said again in the end.
    ...(credits_used !== undefined && services.metering.isCapped(id) ? { credits_used: 0 } : {}),
  })
  if (value.key !== undefined) mendKey(applying, name, id, value.key)
}

function mendKey(applying: Applying, name: string, accountId: string, key: string): void {
  const { services, records } = applying
  const caller = accountCaller(accountId)
  const keyId = records.find('account_key', name)?.id
  const present = services.keys.list(caller).find(({ id }) => id === keyId)
  if (present) {
    services.keys.change(caller, present.id, { label: present.label, key })
    return
  }
  const { id } = services.keys.create(caller, { label: 'First key' }, key)
  applying.keep('account_key', name, id, () => services.keys.delete(caller, id))
}
