import { eq, sql } from 'drizzle-orm'
import type { Caller } from '../../http/caller.ts'
import { hashOf, hashTextOf } from '../../runtime/secret.ts'
import { type Database, ReadCache } from '../../storage/database.ts'
import type { LastUse } from '../accounts/last-use.ts'
import type { Changes } from '../changes/types.ts'
import { apiKeys } from './table.ts'

/** An empty list of ids, as stored. */
const EMPTY_LIST = '[]'

/** A key, as read from the database. */
interface FoundKey {
  caller: Caller
  lastUsedAt: number | null
}

/** Authenticates keys. Every request needs this, so results are cached until the database changes. */
export class KeyAuthenticator {
  readonly #lastUse: LastUse
  readonly #changes: Changes
  readonly #found: ReadCache<FoundKey | null>
  readonly #byHash

  /** @param changes notified when a key is used, once a minute */
  constructor({ queries, version }: Database, lastUse: LastUse, changes: Changes) {
    this.#lastUse = lastUse
    this.#changes = changes
    this.#found = new ReadCache(version)
    this.#byHash = queries
      .select({
        id: apiKeys.id,
        accountId: apiKeys.accountId,
        hash: apiKeys.hash,
        serverIds: sql<string>`${apiKeys.allowedServerIds}`,
        projectIds: sql<string>`${apiKeys.allowedProjectIds}`,
        lastUsedAt: apiKeys.lastUsedAt,
      })
      .from(apiKeys)
      .where(eq(apiKeys.hash, sql.placeholder('hash')))
      .prepare()
  }

  /** Returns the caller of a key's plaintext, or null if there is no such key. */
  authenticate(key: string): Caller | null {
    // Every request pays for this: the hash is made as the text that it is looked up by.
    const found = this.#found.get(hashTextOf(key), () => this.#read(hashOf(key)))
    if (!found) return null
    const { credentialId, accountId } = found.caller
    if (this.#lastUse.note(credentialId, found.lastUsedAt))
      this.#changes.notify('key', credentialId, accountId)
    return found.caller
  }

  /** Reports whether a plaintext is an existing key. */
  isKey(key: string): boolean {
    return this.#read(hashOf(key)) !== null
  }

  #read(hash: Buffer): FoundKey | null {
    const row = this.#byHash.get({ hash })
    // The index lookup leaks the first differing byte through its timing. This comparison leaks nothing more.
    if (!row || !crypto.timingSafeEqual(row.hash, hash)) return null
    const { id: credentialId, accountId, lastUsedAt } = row
    const scope = { servers: setOf(row.serverIds), projects: setOf(row.projectIds) }
    return { caller: { accountId, credentialId, ...scope }, lastUsedAt }
  }
}

const setOf = (list: string): ReadonlySet<string> | null =>
  list === EMPTY_LIST ? null : new Set(JSON.parse(list) as string[])
