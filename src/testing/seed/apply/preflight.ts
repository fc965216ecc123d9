import { accountCaller } from '../../../http/caller.ts'
import type { AccountPlan } from '../../../resources/accounts/model.ts'
import { limitsOf, withOverrides } from '../../../resources/accounts/plan.ts'
import type { FixtureEntry } from '../fixtures.ts'
import { FIRST_ACCOUNT } from '../references.ts'
import type { ProjectFixture, ServerFixture } from '../resolve.ts'
import type { ApplyContext } from './context.ts'
import { sourceOf } from './projects.ts'
import { localReceiver } from './webhooks.ts'

/**
 * Checks for what the API would refuse before anything is changed: plans, budgets, and existing resources that cannot
 * become what the files describe.
 *
 * @throws StartupError with its position
 */
export async function preflight(context: ApplyContext): Promise<void> {
  const { fixtures } = context
  const names = [FIRST_ACCOUNT, ...fixtures.accounts.map(({ name }) => name)]
  for (const name of new Set(names)) await checkServers(context, name)
  for (const one of fixtures.servers) checkFiles(context, one)
  await checkProjects(context)
  await checkWebhooks(context)
  for (const one of fixtures.accounts)
    checkKey(context, one, context.records.find('account_key', one.name)?.id)
  for (const one of fixtures.keys) checkKey(context, one, context.records.find('key', one.name)?.id)
}

/** Returns the plan of an account after the files are applied. */
function planOf(context: ApplyContext, name: string): AccountPlan {
  const { fixtures, services } = context
  const plan = fixtures.accounts.find((one) => one.name === name)?.value.plan
  const id = context.accountId(name)
  if (plan === undefined && id !== undefined) return services.plans.of(id).plan
  return withOverrides(services.plans.base, plan ?? {})
}

/**
 * Returns the id of the existing server of an entry.
 *
 * @throws StartupError if it belongs to another account, or has another tier or image
 */
function present(context: ApplyContext, one: FixtureEntry<ServerFixture>): string | undefined {
  const { records, services } = context
  const id = records.find('server', one.name)?.id
  const row = id === undefined ? undefined : services.servers.records.find(id)
  if (!row) return undefined
  const { account, tier, image } = one.value
  const remedy = 'Delete it, give it another name in the file, or start on another data directory.'
  if (row.accountId !== context.accountId(account)) {
    throw one.error(`the server ${row.id} is there and belongs to another account. ${remedy}`, 'account')
  }
  if (tier !== undefined && tier !== row.tier) {
    throw one.error(
      `the server ${row.id} is there and is ${row.tier}, which never changes. ${remedy}`,
      'tier',
    )
  }
  const { image: own } = services.servers.compute(accountCaller(row.accountId), row.id)
  if (image !== undefined && image !== own) {
    throw one.error(
      `the server ${row.id} is there and has ${own === null ? 'no image' : `the image ${own}`}, which never changes. ${remedy}`,
      'image',
    )
  }
  return row.id
}

/** Checks that the plan and the budget of an account allow its new servers, and their images are permitted. */
async function checkServers(context: ApplyContext, account: string): Promise<void> {
  const { fixtures, services } = context
  const plan = planOf(context, account)
  const id = context.accountId(account)
  let count = id === undefined ? 0 : services.servers.count(id)
  for (const one of fixtures.servers) {
    if ((one.value.account ?? FIRST_ACCOUNT) !== account || present(context, one) !== undefined) continue
    const { tier = 'small' } = one.value
    if (!plan.tiers.includes(tier)) {
      const allowed = plan.tiers.join(', ') || 'none'
      throw one.error(
        `the plan of the account "${account}" does not allow the tier ${tier}: it allows ${allowed}.`,
        'tier',
      )
    }
    count += 1
    if (count > plan.servers) {
      throw one.error(
        `the plan of the account "${account}" allows ${plan.servers} servers, with this one there are ${count}.`,
      )
    }
    checkBudget(context, account, one, plan)
    const { image } = one.value
    if (image !== undefined) await one.run(() => services.servers.images.choose(tier, { image }), 'image')
  }
}

/** A server that is made costs. */
function checkBudget(
  context: ApplyContext,
  account: string,
  one: FixtureEntry<ServerFixture>,
  plan: AccountPlan,
): void {
  const { fixtures, services } = context
  const given = fixtures.accounts.find(({ name }) => name === account)?.value
  const id = context.accountId(account)
  const cap = given?.budget_cap ?? (id === undefined ? plan.monthly_cap : services.metering.budget(id).cap)
  // The file's amount is set only after the servers exist.
  const used = id === undefined || given?.credits_used !== undefined ? 0 : services.metering.budget(id).used
  if (used < cap) return
  throw one.error(
    `the account "${account}" has used ${used} of its budget of ${cap} credits, so that no server starts. Raise "budget_cap", or give "credits_used" of the account, which counts when its servers are there.`,
  )
}

/** Checks that the files of a server and its projects fit into its tier. */
function checkFiles(context: ApplyContext, one: FixtureEntry<ServerFixture>): void {
  const { fixtures } = context
  const { account = FIRST_ACCOUNT, tier = 'small', files } = one.value
  const limit = limitsOf(planOf(context, account), tier).storageBytes
  const projects = fixtures.projects.filter(({ value }) => value.server === one.name)
  const all = [files, ...projects.map(({ value }) => value.files)].flatMap((list) => list ?? [])
  const bytes = all.reduce((sum, { size }) => sum + size, 0)
  if (bytes > limit) {
    throw one.error(`its files have ${bytes} bytes, and a ${tier} server of this plan has room for ${limit}.`)
  }
}

async function checkProjects(context: ApplyContext): Promise<void> {
  const { fixtures, records } = context
  for (const one of fixtures.projects) {
    const { directory } = one.value
    if (directory !== undefined && context.mode === 'start')
      throw one.error('"berth up" alone sends a directory. Give "files" here.', 'directory')
  }
  for (const server of fixtures.servers) {
    const declared = fixtures.projects.filter(({ value }) => value.server === server.name)
    if (declared.length === 0) continue
    const { account = FIRST_ACCOUNT, tier = 'small' } = server.value
    const cap = planOf(context, account).projects[tier]
    const serverId = present(context, server)
    const there = serverId === undefined ? [] : await projectsOf(context, server, serverId)
    let count = there.length
    for (const one of declared) {
      const known = records.find('project', one.name)
      if (known && there.includes(known.id)) {
        checkSource(one, known)
        continue
      }
      count += 1
      if (count > cap) {
        throw one.error(
          `the plan of the account "${account}" allows ${cap} projects on a ${tier} server, with this one there are ${count}.`,
        )
      }
    }
  }
}

/** Returns the ids of the projects on a server. */
async function projectsOf(
  { services }: ApplyContext,
  server: FixtureEntry<unknown>,
  serverId: string,
): Promise<string[]> {
  const projects = await services.projects()
  const { accountId = '' } = services.servers.records.find(serverId) ?? {}
  const all = await server.run(() => projects.list(accountCaller(accountId), serverId))
  return all.map(({ id }) => id)
}

/** Checks that a project's code has the same source, and it the same kind, as when it was created. */
function checkSource(
  one: FixtureEntry<ProjectFixture>,
  { id, source }: { id: string; source: string | null },
): void {
  if (source === null || source === sourceOf(one.value)) return
  const inner = one.value.template === undefined ? 'source' : 'template'
  throw one.error(
    `the project ${id} is there, and its code came from elsewhere or its kind was another. Delete it, give it another name in the file, or start on another data directory.`,
    inner,
  )
}

async function checkWebhooks({ fixtures, services, baseUrl }: ApplyContext): Promise<void> {
  if (fixtures.webhooks.length === 0) return
  const webhooks = await services.webhooks()
  for (const one of fixtures.webhooks) {
    const field = one.value.url === undefined ? 'inbox' : 'url'
    await one.run(() => webhooks.check(localReceiver(one.value, baseUrl)), field)
  }
}

/**
 * Checks that no other key has a chosen value.
 *
 * @param id the id of the existing key of this entry
 */
function checkKey(
  { services }: ApplyContext,
  one: FixtureEntry<{ key?: string }>,
  id: string | undefined,
): void {
  const { key } = one.value
  const holder = key === undefined ? undefined : services.keys.idsOf(key)
  if (holder && holder.keyId !== id) {
    throw one.error(
      `the key ${holder.keyId} of ${holder.accountId} has this value already. Choose another.`,
      'key',
    )
  }
}
