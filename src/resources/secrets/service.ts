import { and, eq } from 'drizzle-orm'
import { blob, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { badRequest } from '../../errors.ts'
import type { AppPlan, GeneratedSecret } from '../../hosting/app.ts'
import type { Caller } from '../../http/caller.ts'
import { systemRandom } from '../../runtime/random.ts'
import type { Cipher } from '../../storage/cipher.ts'
import { type Database, type Queries, ReadCache } from '../../storage/database.ts'
import type { Changes } from '../changes/types.ts'
import type { ServersService } from '../servers/service.ts'
import { checkEnvironment } from './environment.ts'
import type { SecretChanges, ServerSecrets, ServerSecretsSet } from './model.ts'

/** Environment variables of servers, with an empty projectId, and of projects. */
const secrets = sqliteTable('secrets', {
  serverId: text('server_id').notNull(),
  projectId: text('project_id').notNull(),
  name: text('name').notNull(),
  /** Sealed. */
  value: blob('value', { mode: 'buffer' }).notNull(),
})

/** Dependencies of the secrets. */
interface SecretsDependencies {
  database: Database
  cipher: Cipher
  servers: ServersService
  changes: Changes
}

/** Called after a change of variables: those of a project or, with an empty id, those of a server. */
type SecretsListener = (serverId: string, projectId: string) => void

/**
 * Characters of set values after which those that were known become the earlier ones, which are forgotten after as many
 * again. Otherwise a program that sets variables again and again would fill the memory.
 * @bound client
 */
const MOST_SET = 1024 * 1024

/** The project id of a server's own variables. */
const SERVER_WIDE = ''

/**
 * Environment variables of servers and projects. They are sealed in the database, and only the processes that need
 * them receive them.
 */
export class SecretsService {
  readonly #queries: Queries
  readonly #cipher: Cipher
  readonly #servers: ServersService
  readonly #changes: Changes
  readonly #environments: ReadCache<Readonly<Record<string, string>>>
  /** Values that were read or set since the start, or since `#earlier`. No process received others. */
  #known = new Set<string>()
  /** Values that were known before that. */
  #earlier: ReadonlySet<string> = new Set()
  /** Characters of the values in `#known` that were set. */
  #setLength = 0
  /** Whether `#known` has all values in the database. */
  #allKnown = false
  readonly #listeners: SecretsListener[] = []

  constructor({ database, cipher, servers, changes }: SecretsDependencies) {
    this.#queries = database.queries
    this.#cipher = cipher
    this.#servers = servers
    this.#changes = changes
    this.#environments = new ReadCache(database.version)
  }

  /** Calls `listener` after each change. */
  onChange(listener: SecretsListener): void {
    this.#listeners.push(listener)
  }

  /** Returns the variables for a process on a server. A project's variables override the server's. */
  environment(serverId: string, projectId: string = SERVER_WIDE): Readonly<Record<string, string>> {
    return this.#environments.get(`${serverId} ${projectId}`, () => ({
      ...this.#read(serverId, SERVER_WIDE),
      ...(projectId === SERVER_WIDE ? {} : this.#read(serverId, projectId)),
    }))
  }

  /**
   * Returns the values of all variables, including values that were replaced since the start, up to a limit. Use it to
   * mask output: text that was printed earlier stays secret.
   */
  values(): ReadonlySet<string> {
    if (!this.#allKnown) {
      for (const row of this.#queries.select().from(secrets).all()) this.#open(row)
      this.#allKnown = true
    }
    return this.#earlier.size === 0 ? this.#known : this.#known.union(this.#earlier)
  }

  /**
   * Sets and removes variables of a server.
   *
   * @throws BerthError 400 for an invalid name, or if no server is named and the key does not reach exactly one; 404
   */
  setForServer(caller: Caller, { server_id: named, secrets: changes }: ServerSecretsSet): ServerSecrets {
    const serverId = named ?? this.#onlyServer(caller)
    this.#servers.getRow(caller, serverId)
    return { server_id: serverId, keys: this.set(serverId, SERVER_WIDE, changes) }
  }

  /**
   * Sets variables, and removes those whose value is null.
   *
   * @returns the names of all variables now, sorted
   * @throws BerthError 400 for an invalid name or too much data; nothing is changed then
   */
  set(serverId: string, projectId: string, changes: SecretChanges): string[] {
    checkEnvironment('secrets', changes)
    if (Object.keys(changes).length === 0) return this.names(serverId, projectId)
    this.#queries.transaction(() => {
      for (const [name, value] of Object.entries(changes)) this.#change(serverId, projectId, name, value)
      checkEnvironment('secrets', this.environment(serverId, projectId))
    })
    this.#notify(serverId, projectId)
    for (const listener of this.#listeners) listener(serverId, projectId)
    return this.names(serverId, projectId)
  }

  /** Returns the names of the variables of a project or, without its id, of a server, sorted. */
  names(serverId: string, projectId: string = SERVER_WIDE): string[] {
    const which = this.#of(serverId, projectId)
    const rows = this.#queries.select({ name: secrets.name }).from(secrets).where(which).all()
    return rows.map(({ name }) => name).sort()
  }

  /** Stores the first variables of a new project. They were checked before. */
  add(serverId: string, projectId: string, variables: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(variables)) this.#change(serverId, projectId, name, value)
    if (Object.keys(variables).length > 0) this.#notify(serverId, projectId)
  }

  /**
   * Makes the secrets of an app that only have to be secret and have no value yet, and keeps them.
   *
   * @param projectId empty for an app that its server publishes
   * @param given the values that the app has
   */
  generate(
    serverId: string,
    projectId: string,
    { env }: Pick<AppPlan, 'env'>,
    given: Readonly<Record<string, string>>,
  ): void {
    const made = Object.entries(env).flatMap(([name, { required, generated }]) =>
      !required || generated === undefined || name in given ? [] : [[name, generateSecret(generated)]],
    )
    this.add(serverId, projectId, Object.fromEntries(made))
  }

  /** Deletes the variables of a project. */
  drop(serverId: string, projectId: string): void {
    const dropped = this.#queries.delete(secrets).where(this.#of(serverId, projectId))
    if (dropped.returning({ name: secrets.name }).all().length > 0) this.#notify(serverId, projectId)
  }

  #onlyServer(caller: Caller): string {
    const [only, ...others] = this.#servers.list(caller)
    if (only && others.length === 0) return only.id
    throw badRequest(
      `"server_id" in the body is missing: the key reaches ${only ? others.length + 1 : 'no'} servers. Say which one is meant.`,
    )
  }

  #change(serverId: string, projectId: string, name: string, value: string | null): void {
    const which = and(this.#of(serverId, projectId), eq(secrets.name, name))
    this.#queries.delete(secrets).where(which).run()
    if (value === null) return
    this.#keepKnown(value)
    const sealed = this.#cipher.seal(value, contextOf(serverId, projectId, name))
    this.#queries.insert(secrets).values({ serverId, projectId, name, value: sealed }).run()
  }

  #keepKnown(value: string): void {
    if (this.#setLength > MOST_SET) {
      this.#earlier = this.#known
      this.#known = new Set()
      this.#setLength = 0
      this.#allKnown = false
    }
    this.#known.add(value)
    this.#setLength += value.length
  }

  #read(serverId: string, projectId: string): Record<string, string> {
    const rows = this.#queries.select().from(secrets).where(this.#of(serverId, projectId)).all()
    return Object.fromEntries(rows.map((row) => [row.name, this.#open(row)]))
  }

  #open({ serverId, projectId, name, value }: typeof secrets.$inferSelect): string {
    const opened = this.#cipher.open(value, contextOf(serverId, projectId, name))
    this.#known.add(opened)
    return opened
  }

  #notify(serverId: string, projectId: string): void {
    const accountId = this.#servers.records.find(serverId)?.accountId
    if (accountId !== undefined) this.#changes.notify('secret', projectId || serverId, accountId, serverId)
  }

  #of(serverId: string, projectId: string) {
    return and(eq(secrets.serverId, serverId), eq(secrets.projectId, projectId))
  }
}

const contextOf = (serverId: string, projectId: string, name: string): string =>
  `secrets ${serverId} ${projectId} ${name}`

/** Bytes of a secret that berth makes: the length of a key of AES-256, as Laravel wants it. */
const GENERATED_BYTES = 32

function generateSecret(form: GeneratedSecret): string {
  const bytes = Buffer.from(systemRandom.bytes(GENERATED_BYTES))
  return form === 'hex' ? bytes.toString('hex') : `base64:${bytes.toString('base64')}`
}
