import { eq, sql } from 'drizzle-orm'
import type { Caller } from '../../accounts/caller.ts'
import { accounts } from '../../accounts/table.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import { base62, type Random } from '../../runtime/random.ts'
import type { Queries } from '../../storage/database.ts'
import { apiKeys } from './table.ts'

/** What the keys need. */
interface KeysDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  random: Random
}

/** API keys: 256 bits behind `sk_live_`, found again by their hash. */
export class KeysService {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #random: Random
  readonly #byHash

  constructor({ queries, clock, ids, random }: KeysDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#ids = ids
    this.#random = random
    this.#byHash = queries
      .select({ id: apiKeys.id, accountId: apiKeys.accountId, hash: apiKeys.hash })
      .from(apiKeys)
      .where(eq(apiKeys.hash, sql.placeholder('hash')))
      .prepare()
  }

  /** The caller behind a key's plaintext, or null where it is none of ours. */
  authenticate(key: string): Caller | null {
    const hash = hashOf(key)
    const row = this.#byHash.get({ hash })
    // The index has compared already, up to the first byte that differs; this one tells no timing.
    if (!row || !crypto.timingSafeEqual(row.hash, hash)) return null
    return { accountId: row.accountId, keyId: row.id }
  }

  /**
   * Makes sure that there is a first account and that the given key, or a new one, opens it.
   *
   * @param wanted a key chosen by whoever starts the service
   * @param kept the key of an earlier start
   * @returns the key's plaintext
   */
  ensureFirst(wanted: string | null, kept: string | null): string {
    const key = wanted ?? kept ?? `sk_live_${base62(this.#random, 43)}`
    if (this.authenticate(key)) return key
    return this.#queries.transaction((tx) => {
      const now = this.#clock.now()
      const first = tx.select({ id: accounts.id }).from(accounts).orderBy(sql`rowid`).limit(1).get()
      const accountId = first?.id ?? this.#ids.next('acct')
      if (!first) tx.insert(accounts).values({ id: accountId, label: 'First account', createdAt: now }).run()
      tx.insert(apiKeys)
        .values({
          id: this.#ids.next(
            'key',
            (id) => tx.select().from(apiKeys).where(eq(apiKeys.id, id)).get() !== undefined,
          ),
          accountId,
          label: 'First key',
          hash: hashOf(key),
          lastFour: key.slice(-4),
          createdAt: now,
        })
        .run()
      return key
    })
  }
}

const hashOf = (key: string): Buffer => new Bun.CryptoHasher('sha256').update(key).digest()
