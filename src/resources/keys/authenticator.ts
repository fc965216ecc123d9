import { eq, sql } from 'drizzle-orm'
import type { Caller, Scope } from '../../accounts/caller.ts'
import type { Queries } from '../../storage/database.ts'
import type { LastUse } from './last-use.ts'
import { apiKeys } from './table.ts'

/** How an empty list of ids is stored. */
const EVERYTHING = '[]'

/** A scope with the stored lists that it was read from. */
interface ReadScope extends Scope {
  serverIds: string
  projectIds: string
}

/** Finds the caller behind a key. Every request passes here: lists of ids are read once and kept. */
export class Authenticator {
  readonly #lastUse: LastUse
  readonly #scopes = new Map<string, ReadScope>()
  readonly #byHash

  constructor(queries: Queries, lastUse: LastUse) {
    this.#lastUse = lastUse
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
    const row = this.find(key)
    if (!row) return null
    this.#lastUse.note(row.id, row.lastUsedAt)
    const { servers, projects } = this.#scopeOf(row)
    return { accountId: row.accountId, keyId: row.id, servers, projects }
  }

  /** The record of a key's plaintext. */
  find(key: string) {
    const hash = hashOf(key)
    const row = this.#byHash.get({ hash })
    // The index has compared already, up to the first byte that differs; this one tells no timing.
    return row && crypto.timingSafeEqual(row.hash, hash) ? row : null
  }

  /** The key is gone. */
  forget(keyId: string): void {
    this.#scopes.delete(keyId)
  }

  #scopeOf({ id, serverIds, projectIds }: { id: string; serverIds: string; projectIds: string }): Scope {
    if (serverIds === EVERYTHING && projectIds === EVERYTHING) return UNLIMITED
    const known = this.#scopes.get(id)
    if (known && known.serverIds === serverIds && known.projectIds === projectIds) return known
    const scope = { serverIds, projectIds, servers: setOf(serverIds), projects: setOf(projectIds) }
    this.#scopes.set(id, scope)
    return scope
  }
}

const UNLIMITED: Scope = { servers: null, projects: null }

const setOf = (list: string): ReadonlySet<string> | null =>
  list === EVERYTHING ? null : new Set(JSON.parse(list) as string[])

/** What a key is found by: it holds 256 random bits, which need no slow hash. */
export const hashOf = (key: string): Buffer => new Bun.CryptoHasher('sha256').update(key).digest()
