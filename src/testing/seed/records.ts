import { and, asc, eq } from 'drizzle-orm'
import { accountCaller } from '../../http/caller.ts'
import type { AccountsDependencies } from '../../resources/accounts/service.ts'
import { AccountsService } from '../../resources/accounts/service.ts'
import type { KeysService } from '../../resources/keys/service.ts'
import type { ProjectsService } from '../../resources/projects/service.ts'
import type { ServersService } from '../../resources/servers/service.ts'
import type { WebhooksService } from '../../resources/webhooks/service.ts'
import type { Queries } from '../../storage/database.ts'
import { type FixtureKind, fixtures } from './table.ts'

/** The services that list fixtures. */
export interface ListingServices extends AccountsDependencies {
  keys: KeysService
  servers: ServersService
  projects: () => Promise<ProjectsService>
  webhooks: () => Promise<WebhooksService>
}

/** The id of a named fixture. */
type FixtureRow = typeof fixtures.$inferSelect

/** Records what fixtures files have created, so that a second start creates nothing twice. */
export class FixtureRecords {
  readonly #queries: Queries

  constructor(queries: Queries) {
    this.#queries = queries
  }

  /** Returns the record of a name; its object may have been deleted. */
  find(kind: FixtureKind, name: string): FixtureRow | undefined {
    return this.#queries.select().from(fixtures).where(named(kind, name)).get()
  }

  /** Sets the id of a name. */
  keep(kind: FixtureKind, name: string, id: string, source: string | null = null): void {
    this.#queries
      .insert(fixtures)
      .values({ kind, name, id, source })
      .onConflictDoUpdate({ target: [fixtures.kind, fixtures.name], set: { id, source } })
      .run()
  }

  /** Removes a name's record. */
  forget(kind: FixtureKind, name: string): void {
    this.#queries.delete(fixtures).where(named(kind, name)).run()
  }

  /** Returns all of a kind, by name. */
  list(kind: FixtureKind): FixtureRow[] {
    const rows = this.#queries.select().from(fixtures).where(eq(fixtures.kind, kind))
    return rows.orderBy(asc(fixtures.name)).all()
  }
}

const named = (kind: FixtureKind, name: string) => and(eq(fixtures.kind, kind), eq(fixtures.name, name))

/** What a fixtures file has created, with its ids and credentials. */
interface ListedFixture {
  kind: 'account' | 'server' | 'project' | 'key' | 'webhook'
  /** Its name in the files. */
  name: string
  id: string
  account_id: string
  /** The key itself; for an account, the key created with it. Null if the key was deleted, or no copy was kept. */
  api_key?: string | null
  server_id?: string
  url?: string | null
  /** The signing secret. */
  secret?: string | null
}

/** Lists what fixtures files have created and still exists, by kind and name. */
export async function listFixtures(services: ListingServices): Promise<ListedFixture[]> {
  const records = new FixtureRecords(services.queries)
  const all = (kind: FixtureKind) => records.list(kind)
  const { keys, servers } = services
  const accounts = new AccountsService(services).list()
  const ids = new Set(accounts.map(({ id }) => id))
  const present = accounts.flatMap(({ id }) =>
    keys.list(accountCaller(id)).map((key) => ({ key, account: id })),
  )
  const keyBehind = (id: string | undefined) => present.find(({ key }) => key.id === id)

  const listed: ListedFixture[] = []
  for (const { name, id } of all('account')) {
    if (!ids.has(id)) continue
    const key = keyBehind(records.find('account_key', name)?.id)?.key
    listed.push({ kind: 'account', name, id, account_id: id, api_key: key ? keys.plaintext(key.id) : null })
  }
  for (const { name, id } of all('server')) {
    const row = servers.records.find(id)
    if (row) listed.push({ kind: 'server', name, id, account_id: row.accountId, url: row.publicUrl })
  }
  const made = all('project')
  const projects = made.length === 0 ? null : await services.projects()
  for (const { name, id } of made) {
    const account = accounts.find((one) => projects?.owns(one.id, id))
    if (!projects || !account) continue
    const { server_id, url } = projects.get(accountCaller(account.id), id)
    listed.push({ kind: 'project', name, id, account_id: account.id, server_id, url })
  }
  for (const { name, id } of all('key')) {
    const found = keyBehind(id)
    if (found) listed.push({ kind: 'key', name, id, account_id: found.account, api_key: keys.plaintext(id) })
  }
  const subscribed = all('webhook')
  const webhooks = subscribed.length === 0 ? null : await services.webhooks()
  for (const { name, id } of subscribed) {
    for (const { id: account_id } of accounts) {
      const found = webhooks?.list(accountCaller(account_id)).find((one) => one.id === id)
      if (!found || !webhooks) continue
      listed.push({
        kind: 'webhook',
        name,
        id,
        account_id,
        url: found.url,
        secret: await webhooks.secret(id),
      })
    }
  }
  return listed
}
