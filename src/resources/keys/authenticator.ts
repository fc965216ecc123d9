import { eq, sql } from 'drizzle-orm'
import type { Caller } from '../../http/caller.ts'
import { hashOf } from '../../runtime/secret.ts'
import type { Database } from '../../storage/database.ts'
import { ReadCache } from '../../storage/read-cache.ts'
import type { LastUse } from '../accounts/last-use.ts'
import { apiKeys } from './table.ts'

/** How an empty list of ids is stored. */
const EVERYTHING = '[]'

/** A key that was found. */
interface Found {
  caller: Caller
  lastUsedAt: number | null
}

/** Finds the caller behind a key. Every request passes here: what was found is kept until anything changes. */
export class Authenticator {
  readonly #lastUse: LastUse
  readonly #found: ReadCache<Found | null>
  readonly #byHash

  constructor({ queries, version }: Database, lastUse: LastUse) {
    this.#lastUse = lastUse
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

  /** The caller behind a key's plaintext, or null where it is none of ours. */
  authenticate(key: string): Caller | null {
    const hash = hashOf(key)
    const found = this.#found.get(hash.toString('base64'), () => this.#read(hash))
    if (!found) return null
    this.#lastUse.note(found.caller.credentialId, found.lastUsedAt)
    return found.caller
  }

  /** Whether a plaintext is a key's. */
  knows(key: string): boolean {
    return this.#read(hashOf(key)) !== null
  }

  #read(hash: Buffer): Found | null {
    const row = this.#byHash.get({ hash })
    // The index has compared already, up to the first byte that differs; this one tells no timing.
    if (!row || !crypto.timingSafeEqual(row.hash, hash)) return null
    const { id: credentialId, accountId, lastUsedAt } = row
    const scope = { servers: setOf(row.serverIds), projects: setOf(row.projectIds) }
    return { caller: { accountId, credentialId, ...scope }, lastUsedAt }
  }
}

const setOf = (list: string): ReadonlySet<string> | null =>
  list === EVERYTHING ? null : new Set(JSON.parse(list) as string[])
