import { sql } from 'drizzle-orm'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import { hashOf } from '../../runtime/secret.ts'
import type { Queries } from '../../storage/database.ts'

/** The ids of the first account and its first key, which survive a reset. */
export interface FirstIds {
  readonly accountId: string
  /** Absent if the key was deleted. */
  readonly keyId?: string
}

/** Dependencies of the first account. */
interface FirstAccountDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  /** Reports whether a plaintext is that of a key. */
  isKey: (key: string) => boolean
  /** Returns the ids of a key and its account, or undefined if there is no such key. */
  idsOf: (key: string) => { accountId: string; keyId: string } | undefined
  /** Reports whether a key of an account reaches all of it. */
  hasAccountWide: (accountId: string) => boolean
  /** Generates the plaintext of a key. */
  newKey: () => string
  newKeyId: () => string
}

/** The account that every instance has from its first start on, and its first key. */
export class FirstAccount {
  readonly #dependencies: FirstAccountDependencies

  constructor(dependencies: FirstAccountDependencies) {
    this.#dependencies = dependencies
  }

  /**
   * Creates the first account and an account-wide key for it, unless they exist.
   *
   * @param wanted a key chosen by the operator, valid from now on
   * @param kept the key of an earlier start; null if that start had none, undefined for the first start
   * @param given the ids for the first account and its first key if they do not exist yet
   * @returns the plaintext of the wanted key, else of the kept one, else of a new one; null if the kept one was
   * deleted and the account has other account-wide keys
   */
  ensure(wanted: string | null, kept: string | null | undefined, given?: FirstIds): string | null {
    const { queries, clock, ids, isKey, hasAccountWide, newKey, newKeyId } = this.#dependencies
    const known = wanted ?? kept ?? null
    if (known !== null && isKey(known)) return known
    return queries.transaction(() => {
      const now = clock.now()
      const first = this.#find()
      if (wanted === null && kept !== undefined && first && hasAccountWide(first.id)) return null
      const accountId = first?.id ?? given?.accountId ?? ids.next('acct')
      // Plain statements: the first use of a table's builder would slow the start by a millisecond.
      if (!first) {
        queries.run(
          sql`INSERT INTO accounts (id, label, created_at) VALUES (${accountId}, 'First account', ${now})`,
        )
      }
      const key = known ?? newKey()
      const id = first ? newKeyId() : (given?.keyId ?? newKeyId())
      // Not sealed yet: sealing loads a library. `keepCopy` does it later.
      queries.run(
        sql`INSERT INTO api_keys (id, account_id, label, hash, last_four, allowed_server_ids, allowed_project_ids, created_at)
          VALUES (${id}, ${accountId}, 'First key', ${hashOf(key)}, ${key.slice(-4)}, '[]', '[]', ${now})`,
      )
      return key
    })
  }

  /**
   * Returns the ids of the first account and of its first key.
   *
   * @param key the key's plaintext; the key may have been deleted
   */
  ids(key: string | null): FirstIds | undefined {
    const first = this.#find()
    const known = key === null ? undefined : this.#dependencies.idsOf(key)
    return first && (known ?? { accountId: first.id })
  }

  /** Returns the id of the first account. It exists once the service has started. */
  accountId(): string {
    const first = this.#find()
    if (!first) throw new Error('there is no account')
    return first.id
  }

  #find(): { id: string } | undefined {
    const [first] = this.#dependencies.queries.values<[string]>(
      sql`SELECT id FROM accounts ORDER BY rowid LIMIT 1`,
    )
    return first && { id: first[0] }
  }
}
