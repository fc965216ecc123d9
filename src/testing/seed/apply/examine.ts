import { accountCaller } from '../../../http/caller.ts'
import type { Plan } from '../../../resources/accounts/model.ts'
import { limitsOf, withOverrides } from '../../../resources/accounts/plan.ts'
import type { Declared } from '../declared.ts'
import { FIRST_ACCOUNT } from '../references.ts'
import type { ProjectFixture, ServerFixture } from '../settle.ts'
import type { Applying } from './applying.ts'
import { sourceOf } from './projects.ts'
import { destinationOf } from './webhooks.ts'

/**
 * Finds what the API would refuse, as far as that can be known before anything is done: plans, budgets, and what
 * is there already and cannot become what the files say.
 *
 * @throws StartupError with where it stands
 */
export async function examine(applying: Applying): Promise<void> {
  const { fixtures } = applying
  const names = [FIRST_ACCOUNT, ...fixtures.accounts.map(({ name }) => name)]
  for (const name of new Set(names)) examineServers(applying, name)
  for (const one of fixtures.servers) examineFiles(applying, one)
  await examineProjects(applying)
  await examineWebhooks(applying)
  for (const one of fixtures.accounts)
    examineKey(applying, one, applying.records.find('account_key', one.name)?.id)
  for (const one of fixtures.keys) examineKey(applying, one, applying.records.find('key', one.name)?.id)
}

/** The plan of an account, as it is when the files hold. */
function planOf(applying: Applying, name: string): Plan {
  const { fixtures, services } = applying
  const plan = fixtures.accounts.find((one) => one.name === name)?.value.plan
  const id = applying.accountId(name)
  if (plan === undefined && id !== undefined) return services.plans.of(id).plan
  return withOverrides(services.plans.base, plan ?? {})
}

/** The server behind a name, where it is there. @throws StartupError where it is another's or of another tier */
function present(applying: Applying, one: Declared<ServerFixture>): string | undefined {
  const { records, services } = applying
  const id = records.find('server', one.name)?.id
  const row = id === undefined ? undefined : services.servers.find(id)
  if (!row) return undefined
  const { account, tier } = one.value
  const remedy = 'Delete it, give it another name in the file, or start on another data folder.'
  if (row.accountId !== applying.accountId(account)) {
    throw one.refusal(`the server ${row.id} is there and belongs to another account. ${remedy}`, 'account')
  }
  if (tier !== undefined && tier !== row.tier) {
    throw one.refusal(
      `the server ${row.id} is there and is ${row.tier}, which never changes. ${remedy}`,
      'tier',
    )
  }
  return row.id
}

/** Sees whether the plan and the budget of an account allow the servers that are to be made in it. */
function examineServers(applying: Applying, account: string): void {
  const { fixtures, services } = applying
  const plan = planOf(applying, account)
  const id = applying.accountId(account)
  let count = id === undefined ? 0 : services.servers.count(id)
  for (const one of fixtures.servers) {
    if ((one.value.account ?? FIRST_ACCOUNT) !== account || present(applying, one) !== undefined) continue
    const { tier = 'small' } = one.value
    if (!plan.tiers.includes(tier)) {
      const allowed = plan.tiers.join(', ') || 'none'
      throw one.refusal(
        `the plan of the account "${account}" does not allow the tier ${tier}: it allows ${allowed}.`,
        'tier',
      )
    }
    count += 1
    if (count > plan.servers) {
      throw one.refusal(
        `the plan of the account "${account}" allows ${plan.servers} servers, with this one there are ${count}.`,
      )
    }
    examineBudget(applying, account, one, plan)
  }
}

/** A server that is made costs. */
function examineBudget(applying: Applying, account: string, one: Declared<ServerFixture>, plan: Plan): void {
  const { fixtures, services } = applying
  const given = fixtures.accounts.find(({ name }) => name === account)?.value
  const id = applying.accountId(account)
  const cap = given?.budget_cap ?? (id === undefined ? plan.monthly_cap : services.metering.budget(id).cap)
  // What a file says of the use counts when all is there.
  const used = id === undefined || given?.credits_used !== undefined ? 0 : services.metering.budget(id).used
  if (used < cap) return
  throw one.refusal(
    `the account "${account}" has used ${used} of its budget of ${cap} credits, so that no server starts. Raise "budget_cap", or give "credits_used" of the account, which counts when its servers are there.`,
  )
}

/** Sees whether the files of a server and its projects fit into its tier. */
function examineFiles(applying: Applying, one: Declared<ServerFixture>): void {
  const { fixtures } = applying
  const { account = FIRST_ACCOUNT, tier = 'small', files } = one.value
  const limit = limitsOf(planOf(applying, account), tier).storageBytes
  const projects = fixtures.projects.filter(({ value }) => value.server === one.name)
  const all = [files, ...projects.map(({ value }) => value.files)].flatMap((list) => list ?? [])
  const bytes = all.reduce((sum, { size }) => sum + size, 0)
  if (bytes > limit) {
    throw one.refusal(
      `its files have ${bytes} bytes, and a ${tier} server of this plan has room for ${limit}.`,
    )
  }
}

async function examineProjects(applying: Applying): Promise<void> {
  const { fixtures, services, records } = applying
  for (const one of fixtures.projects) {
    const { template } = one.value
    if (template !== undefined) await one.telling(() => services.templates.find(template), 'template')
  }
  for (const server of fixtures.servers) {
    const declared = fixtures.projects.filter(({ value }) => value.server === server.name)
    if (declared.length === 0) continue
    const { account = FIRST_ACCOUNT, tier = 'small' } = server.value
    const cap = planOf(applying, account).projects[tier]
    const serverId = present(applying, server)
    const there = serverId === undefined ? [] : await projectsOf(applying, server, serverId)
    let count = there.length
    for (const one of declared) {
      const known = records.find('project', one.name)
      if (known && there.includes(known.id)) {
        examineSource(one, known)
        continue
      }
      count += 1
      if (count > cap) {
        throw one.refusal(
          `the plan of the account "${account}" allows ${cap} projects on a ${tier} server, with this one there are ${count}.`,
        )
      }
    }
  }
}

async function projectsOf(
  { services }: Applying,
  server: Declared<unknown>,
  serverId: string,
): Promise<string[]> {
  const projects = await services.projects()
  const { accountId = '' } = services.servers.find(serverId) ?? {}
  const all = await server.telling(() => projects.list(accountCaller(accountId), serverId))
  return all.map(({ id }) => id)
}

/** What a project's code comes from is settled when it is made. */
function examineSource(
  one: Declared<ProjectFixture>,
  { id, source }: { id: string; source: string | null },
): void {
  if (source === null || source === sourceOf(one.value)) return
  const inner = one.value.template === undefined ? 'source' : 'template'
  throw one.refusal(
    `the project ${id} is there and its code came from elsewhere. Delete it, give it another name in the file, or start on another data folder.`,
    inner,
  )
}

async function examineWebhooks({ fixtures, services, baseUrl }: Applying): Promise<void> {
  if (fixtures.webhooks.length === 0) return
  const webhooks = await services.webhooks()
  for (const one of fixtures.webhooks) {
    const field = one.value.url === undefined ? 'inbox' : 'url'
    await one.telling(() => webhooks.check(destinationOf(one.value, baseUrl)), field)
  }
}

/** A key that somebody chose is one key's alone. @param id the key's that it is for, where that is there */
function examineKey({ services }: Applying, one: Declared<{ key?: string }>, id: string | undefined): void {
  const { key } = one.value
  const holder = key === undefined ? undefined : services.keys.idsOf(key)
  if (holder && holder.keyId !== id) {
    throw one.refusal(
      `the key ${holder.keyId} of ${holder.accountId} has this value already. Choose another.`,
      'key',
    )
  }
}
