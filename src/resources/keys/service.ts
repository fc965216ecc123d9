import { and, desc, eq, isNull, ne, sql } from 'drizzle-orm'
import { badRequest, notFound } from '../../errors.ts'
import { accountCaller, type Caller } from '../../http/caller.ts'
import type { CredentialChanges } from '../../http/credential-changes.ts'
import { idempotency } from '../../http/idempotency-table.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Random } from '../../runtime/random.ts'
import { hashOf, newSecret } from '../../runtime/secret.ts'
import type { Cipher } from '../../storage/cipher.ts'
import type { Database, Queries } from '../../storage/database.ts'
import { LastUse } from '../accounts/last-use.ts'
import { accounts } from '../accounts/table.ts'
import { Authenticator } from './authenticator.ts'
import type { ApiKey, ApiKeyCreate, ApiKeyScope, ApiKeyScopeUpdate, CreatedApiKey } from './model.ts'
import { checkScope, type ScopeOwners, type StoredScope } from './scope.ts'
import { type ApiKeyRow, apiKeys, toApiKey } from './table.ts'

/** What the keys need. */
interface KeysDependencies {
  database: Database
  cipher: Cipher
  clock: Clock
  ids: Ids
  random: Random
  logger: Logger
  credentialChanges: CredentialChanges
  owners: ScopeOwners
}

/** What keys begin with (specification, "Authentication" 1). */
const KEY_PREFIX = 'sk_live_'

/** The ids of the account and the key that stand when all else is reset. */
export interface FirstIds {
  readonly accountId: string
  /** Absent where the key was deleted. */
  readonly keyId?: string
}

/** API keys: 256 bits behind `sk_live_`, found again by their hash, each with a scope of its own. */
export class KeysService {
  readonly #queries: Queries
  readonly #cipher: Cipher
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #random: Random
  readonly #owners: ScopeOwners
  readonly #lastUse: LastUse
  readonly #changes: CredentialChanges
  readonly #authenticator: Authenticator

  constructor({ database, cipher, clock, ids, random, logger, owners, credentialChanges }: KeysDependencies) {
    const { queries } = database
    this.#queries = queries
    this.#cipher = cipher
    this.#clock = clock
    this.#ids = ids
    this.#random = random
    this.#owners = owners
    this.#changes = credentialChanges
    this.#lastUse = new LastUse({ queries, clock, logger, table: apiKeys })
    this.#authenticator = new Authenticator(database, this.#lastUse)
  }

  /** The caller behind a key's plaintext, or null where it is none of ours. */
  authenticate(key: string): Caller | null {
    return this.#authenticator.authenticate(key)
  }

  /** The account's keys, newest first. */
  list({ accountId }: Caller): ApiKey[] {
    const rows = this.#queries
      .select()
      .from(apiKeys)
      .where(eq(apiKeys.accountId, accountId))
      .orderBy(desc(sql`rowid`))
      .all()
    return rows.map((row) => toApiKey(row, this.#lastUse.at(row.id, row.lastUsedAt)))
  }

  /**
   * Makes a key; the result alone carries its plaintext.
   *
   * @param chosen its plaintext, where whoever operates the instance chose it
   * @throws BerthError 400 for ids that the account does not have, and for a chosen key that there is already
   */
  create(caller: Caller, { label, ...wanted }: ApiKeyCreate, chosen?: string): CreatedApiKey {
    const scope = checkScope(caller, wanted, this.#owners)
    if (chosen !== undefined) this.#checkFree(chosen)
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
   * Replaces a key's scope; what is left out means everything.
   *
   * @throws BerthError 404, 400 for ids that the account does not have and for the last account-wide key
   */
  update(caller: Caller, id: string, wanted: ApiKeyScopeUpdate): ApiKeyScope {
    return this.#queries.transaction(() => {
      const row = this.#row(caller, id)
      const scope = checkScope(caller, wanted, this.#owners)
      if (isLimited(scope)) this.#checkNotLast(row, 'limited')
      this.#queries.update(apiKeys).set(scope).where(eq(apiKeys.id, id)).run()
      // An answer of before may tell of what the key reaches no more.
      this.#queries.delete(idempotency).where(eq(idempotency.apiKeyId, id)).run()
      this.#changes.changed(id)
      return { id, allowed_server_ids: scope.allowedServerIds, allowed_project_ids: scope.allowedProjectIds }
    })
  }

  /** Ends a key at once, the caller's own too. @throws BerthError 404, 400 for the last account-wide key */
  delete(caller: Caller, id: string): void {
    this.#queries.transaction(() => {
      this.#checkNotLast(this.#row(caller, id), 'deleted')
      this.#queries.delete(apiKeys).where(eq(apiKeys.id, id)).run()
    })
    this.#ended(id)
  }

  /** Whether a key's scope names a server of this id, be it there or gone. */
  names(serverId: string): boolean {
    const named = sql`instr(${apiKeys.allowedServerIds}, ${JSON.stringify(serverId)}) > 0`
    return this.#queries.select({ id: apiKeys.id }).from(apiKeys).where(named).limit(1).get() !== undefined
  }

  /**
   * Makes sure that there is a first account and that somebody can open it.
   *
   * @param wanted a key chosen by whoever starts the service: it is valid from then on, whatever was before
   * @param kept the key of an earlier start; null where an earlier start found none, undefined for the first start
   * @param ids those that the first account and its first key are to have, where there is none yet
   * @returns the plaintext of the wanted key, else of the kept one, else of a new one; null where the kept one
   *   was deleted and others open the account
   */
  ensureFirst(wanted: string | null, kept: string | null | undefined, ids?: FirstIds): string | null {
    const known = wanted ?? kept ?? null
    if (known !== null && this.#authenticator.knows(known)) return known
    return this.#queries.transaction((tx) => {
      const now = this.#clock.now()
      const first = this.#firstAccount()
      if (wanted === null && kept !== undefined && first && this.#accountWide(first.id)) return null
      const accountId = first?.id ?? ids?.accountId ?? this.#ids.next('acct')
      if (!first) tx.insert(accounts).values({ id: accountId, label: 'First account', createdAt: now }).run()
      const key = known ?? this.#generate()
      const scope = { allowedServerIds: [], allowedProjectIds: [] }
      // Sealing loads a library that the start does not wait for: keepCopy comes later.
      const id = first ? this.#nextId() : (ids?.keyId ?? this.#nextId())
      this.#insert({ id, accountId, label: 'First key', key, scope, cipher: null })
      return key
    })
  }

  /** The ids of a key and its account, where it is valid. */
  idsOf(key: string): { accountId: string; keyId: string } | undefined {
    return this.#queries
      .select({ accountId: apiKeys.accountId, keyId: apiKeys.id })
      .from(apiKeys)
      .where(eq(apiKeys.hash, hashOf(key)))
      .get()
  }

  /** The ids of the first account and of its first key. @param key its plaintext; it may have been deleted */
  firstIds(key: string | null): FirstIds | undefined {
    const first = this.#firstAccount()
    const known = key === null ? undefined : this.idsOf(key)
    return first && (known ?? { accountId: first.id })
  }

  /** Whether there is an account of this id. */
  hasAccount(id: string): boolean {
    return (
      this.#queries.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, id)).get() !== undefined
    )
  }

  /** Whether a key reaches all of an account; without an id, whether there is the account. */
  opens(accountId: string, id: string | null): boolean {
    if (id === null) return this.hasAccount(accountId)
    const own = and(eq(apiKeys.id, id), eq(apiKeys.accountId, accountId))
    const row = this.#queries.select().from(apiKeys).where(own).get()
    return row !== undefined && !isLimited(row)
  }

  /** The id of the account that was there first. There is always one once the service has started. */
  firstAccountId(): string {
    const first = this.#firstAccount()
    if (!first) throw new Error('there is no account')
    return first.id
  }

  /** Adds the sealed copy to a key that has none and whose plaintext is known. */
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

  /** Makes a key that reaches the whole account, for whoever operates the instance, and returns its plaintext. */
  issue(accountId: string, label: string, chosen?: string): string {
    return this.create(accountCaller(accountId), { label }, chosen).key
  }

  /** Gives a key another label and plaintext, for whoever operates the instance. @throws BerthError 400, 404 */
  change(caller: Caller, id: string, { label, key }: { label: string; key?: string }): void {
    this.#queries.transaction(() => {
      this.#row(caller, id)
      const isNew = key !== undefined && this.plaintext(id) !== key
      if (isNew) this.#checkFree(key)
      const secret = isNew ? { hash: hashOf(key), lastFour: key.slice(-4), cipher: this.#seal(id, key) } : {}
      this.#queries
        .update(apiKeys)
        .set({ label, ...secret })
        .where(eq(apiKeys.id, id))
        .run()
    })
  }

  /** The key itself, for whoever operates the instance; null where no copy was kept. */
  plaintext(id: string): string | null {
    const row = this.#queries.select({ cipher: apiKeys.cipher }).from(apiKeys).where(eq(apiKeys.id, id)).get()
    return row?.cipher ? this.#cipher.open(row.cipher, contextOf(id)) : null
  }

  /** Ends every key of an account at once. */
  revokeAll(accountId: string): void {
    const ended = this.#queries
      .delete(apiKeys)
      .where(eq(apiKeys.accountId, accountId))
      .returning({ id: apiKeys.id })
      .all()
    for (const { id } of ended) this.#ended(id)
  }

  /** Writes what waits to be written. */
  stop(): void {
    this.#lastUse.flush()
  }

  #ended(id: string): void {
    this.#lastUse.forget(id)
    this.#changes.changed(id)
  }

  #firstAccount(): { id: string } | undefined {
    return this.#queries.select({ id: accounts.id }).from(accounts).orderBy(sql`rowid`).limit(1).get()
  }

  /** A key that is none yet: randomness that repeats from start to start gives the same ones again. */
  #generate(): string {
    for (;;) {
      const key = newSecret(this.#random, KEY_PREFIX)
      if (!this.#authenticator.knows(key)) return key
    }
  }

  #nextId(): string {
    const taken = (id: string) =>
      this.#queries.select({ id: apiKeys.id }).from(apiKeys).where(eq(apiKeys.id, id)).get() !== undefined
    return this.#ids.next('key', taken)
  }

  #checkFree(key: string): void {
    if (!this.#authenticator.knows(key)) return
    throw badRequest('There is this key already. Choose another.')
  }

  #seal(id: string, key: string): Buffer {
    return this.#cipher.seal(key, contextOf(id))
  }

  #insert(given: NewKey): ApiKeyRow {
    const { key, scope, ...rest } = given
    return this.#queries
      .insert(apiKeys)
      .values({ ...rest, ...scope, hash: hashOf(key), lastFour: key.slice(-4), createdAt: this.#clock.now() })
      .returning()
      .get()
  }

  #row({ accountId }: Caller, id: string): ApiKeyRow {
    const own = and(eq(apiKeys.id, id), eq(apiKeys.accountId, accountId))
    const row = this.#queries.select().from(apiKeys).where(own).get()
    if (!row) throw notFound(`The API key "${id}"`)
    return row
  }

  /** Whether a key but the given one reaches the whole account. */
  #accountWide(accountId: string, besides = ''): boolean {
    const none: string[] = []
    const wide = and(
      eq(apiKeys.accountId, accountId),
      ne(apiKeys.id, besides),
      eq(apiKeys.allowedServerIds, none),
      eq(apiKeys.allowedProjectIds, none),
    )
    return this.#queries.select({ id: apiKeys.id }).from(apiKeys).where(wide).limit(1).get() !== undefined
  }

  /** Without an account-wide key nobody could manage keys any more. */
  #checkNotLast(row: ApiKeyRow, done: 'limited' | 'deleted'): void {
    if (isLimited(row) || this.#accountWide(row.accountId, row.id)) return
    throw badRequest(
      `The key "${row.id}" is the last one that reaches the whole account and cannot be ${done}. Create another account-wide key first.`,
    )
  }
}

/** What the sealed copy of a key belongs to. */
const contextOf = (id: string): string => `api_keys ${id}`

/** What a key is made of. */
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
