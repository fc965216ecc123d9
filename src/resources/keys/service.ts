import { and, desc, eq, isNull, ne, sql } from 'drizzle-orm'
import { badRequest, notFound } from '../../errors.ts'
import { accountCaller, type Caller } from '../../http/caller.ts'
import type { CredentialChanges } from '../../http/credential-changes.ts'
import { idempotency } from '../../http/idempotency-table.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import { once } from '../../runtime/once.ts'
import type { Random } from '../../runtime/random.ts'
import { hashOf, newSecret } from '../../runtime/secret.ts'
import type { Cipher } from '../../storage/cipher.ts'
import type { Database, Queries } from '../../storage/database.ts'
import { LastUse } from '../accounts/last-use.ts'
import { accounts } from '../accounts/table.ts'
import type { Changes } from '../changes/types.ts'
import { KeyAuthenticator } from './authenticator.ts'
import { FirstAccount } from './first-account.ts'
import type { ApiKey, ApiKeyCreate, ApiKeyScope, ApiKeyScopeUpdate, CreatedApiKey } from './model.ts'
import { type ApiKeyRow, apiKeys, toApiKey } from './table.ts'

/** Dependencies of the keys. */
interface KeysDependencies {
  database: Database
  cipher: Cipher
  clock: Clock
  ids: Ids
  random: Random
  logger: Logger
  credentialChanges: CredentialChanges
  changes: Changes
  owners: ScopeOwners
}

/**
 * Receives the id of a key that is deleted, replaced, or has another scope.
 *
 * @param endsSessions whether the sessions that it began end: a key that is limited begins none
 */
type KeyListener = (id: string, endsSessions: boolean) => void

/** The prefix of keys (specification, "Authentication" 1). */
const KEY_PREFIX = 'sk_live_'

/** Manages API keys. A key is `sk_live_` and 256 random bits, is found by its hash and has its own scope. */
export class KeysService {
  readonly #queries: Queries
  readonly #cipher: Cipher
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #random: Random
  readonly #owners: ScopeOwners
  readonly #lastUse: LastUse
  readonly #credentialChanges: CredentialChanges
  readonly #changes: Changes
  readonly #listeners: KeyListener[] = []
  readonly #authenticator: KeyAuthenticator
  readonly #isTaken
  readonly #add
  /** The first account, which exists once the service has started. */
  readonly first: FirstAccount

  constructor(dependencies: KeysDependencies) {
    const { database, cipher, clock, ids, random, logger, owners } = dependencies
    const { queries } = database
    this.#queries = queries
    this.#cipher = cipher
    this.#clock = clock
    this.#ids = ids
    this.#random = random
    this.#owners = owners
    this.#credentialChanges = dependencies.credentialChanges
    this.#changes = dependencies.changes
    this.#lastUse = new LastUse({ queries, clock, logger, table: apiKeys })
    this.#authenticator = new KeyAuthenticator(database, this.#lastUse, this.#changes)
    this.#isTaken = once(() =>
      queries
        .select({ id: apiKeys.id })
        .from(apiKeys)
        .where(eq(apiKeys.id, sql.placeholder('id')))
        .prepare(),
    )
    this.#add = once(() =>
      queries
        .insert(apiKeys)
        .values({
          id: sql.placeholder('id'),
          accountId: sql.placeholder('accountId'),
          label: sql.placeholder('label'),
          hash: sql.placeholder('hash'),
          lastFour: sql.placeholder('lastFour'),
          cipher: sql.placeholder('cipher'),
          allowedServerIds: sql.placeholder('allowedServerIds'),
          allowedProjectIds: sql.placeholder('allowedProjectIds'),
          createdAt: sql.placeholder('createdAt'),
        })
        .returning()
        .prepare(),
    )
    this.first = new FirstAccount({
      ...{ queries, clock, ids },
      isKey: (key) => this.#authenticator.isKey(key),
      idsOf: (key) => this.idsOf(key),
      hasAccountWide: (accountId) => this.#hasAccountWide(accountId),
      newKey: () => this.#generate(),
      newKeyId: () => this.#nextId(),
    })
  }

  /** Notifies `listener` when keys change. */
  subscribe(listener: KeyListener): void {
    this.#listeners.push(listener)
  }

  /** Returns the caller of a key's plaintext, or null if there is no such key. */
  authenticate(key: string): Caller | null {
    return this.#authenticator.authenticate(key)
  }

  /** Returns the account's keys, newest first. */
  list({ accountId }: Caller): ApiKey[] {
    const rows = this.#queries
      .select()
      .from(apiKeys)
      .where(eq(apiKeys.accountId, accountId))
      .orderBy(desc(sql`rowid`))
      .all()
    return rows.map((row) => this.#toKey(row))
  }

  /** Returns a key. @throws BerthError 404 */
  get(caller: Caller, id: string): ApiKey {
    return this.#toKey(this.#row(caller, id))
  }

  /**
   * Creates a key. Only this result contains its plaintext.
   *
   * @param chosen a plaintext chosen by the operator
   * @throws BerthError 400 for ids that the account does not own, and for a chosen key that exists
   */
  create(caller: Caller, { label, ...wanted }: ApiKeyCreate, chosen?: string): CreatedApiKey {
    const scope = checkScope(caller, wanted, this.#owners)
    if (chosen !== undefined) this.#checkUnused(chosen)
    const key = chosen ?? this.#generate()
    const id = this.#nextId()
    const row = this.#insert({
      id,
      accountId: caller.accountId,
      label,
      key,
      scope,
      cipher: this.#seal(id, key),
    })
    return { ...toApiKey(row, null), key }
  }

  /**
   * Replaces a key's scope. A missing list allows everything.
   *
   * @throws BerthError 404; 400 for ids that the account does not own, and if no account-wide key would remain
   */
  update(caller: Caller, id: string, wanted: ApiKeyScopeUpdate): ApiKeyScope {
    const scope = this.#queries.transaction(() => {
      const row = this.#row(caller, id)
      const scope = checkScope(caller, wanted, this.#owners)
      if (isLimited(scope)) this.#checkNotLast(row, 'limited')
      this.#queries.update(apiKeys).set(scope).where(eq(apiKeys.id, id)).run()
      // A stored response may contain data that the key can no longer reach.
      this.#queries.delete(idempotency).where(eq(idempotency.apiKeyId, id)).run()
      return scope
    })
    this.#notify(id, caller.accountId, isLimited(scope))
    return { id, allowed_server_ids: scope.allowedServerIds, allowed_project_ids: scope.allowedProjectIds }
  }

  /**
   * Deletes a key, which may be the caller's own.
   *
   * @throws BerthError 404; 400 for the last account-wide key
   */
  delete(caller: Caller, id: string): void {
    this.#queries.transaction(() => {
      this.#checkNotLast(this.#row(caller, id), 'deleted')
      this.#queries.delete(apiKeys).where(eq(apiKeys.id, id)).run()
    })
    this.#onEnded(id, caller.accountId)
  }

  /** Reports whether the scope of a key names a server or a project, even if that was deleted. */
  hasScopeFor(id: string): boolean {
    const lists = sql`${apiKeys.allowedServerIds} || ${apiKeys.allowedProjectIds}`
    const named = sql`instr(${lists}, ${JSON.stringify(id)}) > 0`
    return this.#queries.select({ id: apiKeys.id }).from(apiKeys).where(named).limit(1).get() !== undefined
  }

  /** Returns the ids of a key and its account, or undefined if there is no such key. */
  idsOf(key: string): { accountId: string; keyId: string } | undefined {
    return this.#queries
      .select({ accountId: apiKeys.accountId, keyId: apiKeys.id })
      .from(apiKeys)
      .where(eq(apiKeys.hash, hashOf(key)))
      .get()
  }

  /** Reports whether an account exists. */
  hasAccount(id: string): boolean {
    return (
      this.#queries.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, id)).get() !== undefined
    )
  }

  /**
   * Reports whether a key exists in the account and reaches all of it. Without an id, reports whether the account
   * exists.
   */
  isOwnerValid(accountId: string, id: string | null): boolean {
    if (id === null) return this.hasAccount(accountId)
    const own = and(eq(apiKeys.id, id), eq(apiKeys.accountId, accountId))
    const row = this.#queries.select().from(apiKeys).where(own).get()
    return row !== undefined && !isLimited(row)
  }

  /** Adds a sealed copy to a key that has none. */
  keepCopy(key: string): void {
    const row = this.#queries
      .select({ id: apiKeys.id })
      .from(apiKeys)
      .where(and(eq(apiKeys.hash, hashOf(key)), isNull(apiKeys.cipher)))
      .get()
    if (!row) return
    this.#queries
      .update(apiKeys)
      .set({ cipher: this.#seal(row.id, key) })
      .where(eq(apiKeys.id, row.id))
      .run()
  }

  /** Creates an account-wide key for the operator and returns its plaintext. */
  issue(accountId: string, label: string, chosen?: string): string {
    return this.create(accountCaller(accountId), { label }, chosen).key
  }

  /**
   * Changes the label and plaintext of a key for the operator. With a new plaintext all that the earlier one began ends.
   *
   * @throws BerthError 400, 404
   */
  change(caller: Caller, id: string, { label, key }: { label: string; key?: string }): void {
    const isReplaced = this.#queries.transaction(() => {
      this.#row(caller, id)
      const isNew = key !== undefined && this.plaintext(id) !== key
      if (isNew) this.#checkUnused(key)
      const secret = isNew ? { hash: hashOf(key), lastFour: key.slice(-4), cipher: this.#seal(id, key) } : {}
      this.#queries
        .update(apiKeys)
        .set({ label, ...secret })
        .where(eq(apiKeys.id, id))
        .run()
      return isNew
    })
    if (isReplaced) this.#notify(id, caller.accountId, true)
    else this.#changes.notify('key', id, caller.accountId)
  }

  /** Returns a key's plaintext for the operator; null if no copy was kept. */
  plaintext(id: string): string | null {
    const row = this.#queries.select({ cipher: apiKeys.cipher }).from(apiKeys).where(eq(apiKeys.id, id)).get()
    return row?.cipher ? this.#cipher.open(row.cipher, sealContext(id)) : null
  }

  /** Deletes every key of an account. */
  revokeAll(accountId: string): void {
    const ended = this.#queries
      .delete(apiKeys)
      .where(eq(apiKeys.accountId, accountId))
      .returning({ id: apiKeys.id })
      .all()
    for (const { id } of ended) this.#onEnded(id, accountId)
  }

  /** Writes pending times of use. */
  stop(): void {
    this.#lastUse.flush()
  }

  #onEnded(id: string, accountId: string): void {
    this.#lastUse.forget(id)
    this.#notify(id, accountId, true)
  }

  /** Notifies that what a key began is to be checked again. Call it after the commit. */
  #notify(id: string, accountId: string, endsSessions: boolean): void {
    this.#credentialChanges.notify(id)
    this.#changes.notify('key', id, accountId)
    for (const listener of this.#listeners) listener(id, endsSessions)
  }

  #toKey(row: ApiKeyRow): ApiKey {
    return toApiKey(row, this.#lastUse.at(row.id, row.lastUsedAt))
  }

  /** Generates a key that does not exist yet. A deterministic source repeats its keys after a restart. */
  #generate(): string {
    for (;;) {
      const key = newSecret(this.#random, KEY_PREFIX)
      if (!this.#authenticator.isKey(key)) return key
    }
  }

  #nextId(): string {
    return this.#ids.next('key', (id) => this.#isTaken().get({ id }) !== undefined)
  }

  #checkUnused(key: string): void {
    if (!this.#authenticator.isKey(key)) return
    throw badRequest('There is this key already. Choose another.')
  }

  #seal(id: string, key: string): Buffer {
    return this.#cipher.seal(key, sealContext(id))
  }

  #insert(given: NewKey): ApiKeyRow {
    const { key, scope, ...rest } = given
    this.#changes.notify('key', given.id, given.accountId)
    const secret = { hash: hashOf(key), lastFour: key.slice(-4) }
    return this.#add().get({ ...rest, ...scope, ...secret, createdAt: this.#clock.now() })
  }

  #row({ accountId }: Caller, id: string): ApiKeyRow {
    const own = and(eq(apiKeys.id, id), eq(apiKeys.accountId, accountId))
    const row = this.#queries.select().from(apiKeys).where(own).get()
    if (!row) throw notFound(`The API key "${id}"`)
    return row
  }

  /** Reports whether a key other than the given one reaches the whole account. */
  #hasAccountWide(accountId: string, besides = ''): boolean {
    const none: string[] = []
    const wide = and(
      eq(apiKeys.accountId, accountId),
      ne(apiKeys.id, besides),
      eq(apiKeys.allowedServerIds, none),
      eq(apiKeys.allowedProjectIds, none),
    )
    return this.#queries.select({ id: apiKeys.id }).from(apiKeys).where(wide).limit(1).get() !== undefined
  }

  /**
   * Refuses to limit or delete the last account-wide key, without which nobody could manage keys.
   *
   * @throws BerthError 400
   */
  #checkNotLast(row: ApiKeyRow, done: 'limited' | 'deleted'): void {
    if (isLimited(row) || this.#hasAccountWide(row.accountId, row.id)) return
    throw badRequest(
      `The key "${row.id}" is the last one that reaches the whole account and cannot be ${done}. Create another account-wide key first.`,
    )
  }
}

/** Returns the context that binds a sealed copy to its key. */
const sealContext = (id: string): string => `api_keys ${id}`

/** The fields of a new key. */
interface NewKey {
  id: string
  accountId: string
  label: string
  key: string
  scope: StoredScope
  cipher: Buffer | null
}

const isLimited = ({ allowedServerIds, allowedProjectIds }: StoredScope): boolean =>
  allowedServerIds.length + allowedProjectIds.length > 0

/** Reports whether an account owns a server or a project. */
type OwnershipCheck = (accountId: string, id: string) => boolean

/** Checks the owners of the ids in a scope. */
interface ScopeOwners {
  server: OwnershipCheck
  project: OwnershipCheck
}

/** A scope, as stored. */
interface StoredScope {
  allowedServerIds: string[]
  allowedProjectIds: string[]
}

/** The largest number of unknown ids that an error names. @bound reader */
const MAX_NAMED = 3

/**
 * Returns the scope to store, with each id once.
 *
 * @throws BerthError 400 that names ids which the account does not own
 */
function checkScope(
  { accountId }: Caller,
  { allowed_server_ids: servers = [], allowed_project_ids: projects = [] }: ApiKeyScopeUpdate,
  owners: ScopeOwners,
): StoredScope {
  return {
    allowedServerIds: checkIds(servers, 'allowed_server_ids', 'servers', (id) =>
      owners.server(accountId, id),
    ),
    allowedProjectIds: checkIds(projects, 'allowed_project_ids', 'projects', (id) =>
      owners.project(accountId, id),
    ),
  }
}

function checkIds(given: string[], field: string, what: string, owned: (id: string) => boolean): string[] {
  const ids = [...new Set(given)]
  const unknown: string[] = []
  for (const id of ids) {
    if (owned(id)) continue
    if (unknown.length === MAX_NAMED) {
      unknown.push('…')
      break
    }
    unknown.push(JSON.stringify(id.length > 60 ? `${id.slice(0, 60)}…` : id))
  }
  if (unknown.length === 0) return ids
  throw badRequest(
    `"${field}" in the body: expected ids of the account's ${what}, which ${unknown.join(', ')} ${unknown.length === 1 ? 'is' : 'are'} not.`,
  )
}
