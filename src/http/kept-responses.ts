import { and, eq, sql } from 'drizzle-orm'
import type { Queries } from '../storage/database.ts'
import { idempotency } from './idempotency-table.ts'

/** Bytes of the responses that are kept for a credential. A larger response is not kept. */
export const MOST_KEPT_BYTES = 32 * 1024 * 1024

/** Credentials whose sizes are in memory. Others are measured again. */
const MAX_MEASURED = 1_000

/**
 * Limits the responses that are kept for each credential. Otherwise one that reaches a single server could fill the disk:
 * its requests cost nothing of the server's storage.
 */
export class KeptResponses {
  readonly #queries: Queries
  /** Bytes that are kept for a credential, or more: what has expired may be included. */
  readonly #sizes = new Map<string, number>()

  constructor(queries: Queries) {
    this.#queries = queries
  }

  /**
   * Forgets the oldest responses of a credential if another one would exceed the limit. Their requests still count as
   * done. Call it in the transaction that stores the other one.
   *
   * @param bytes of the other response
   */
  makeRoom(credentialId: string, bytes: number): void {
    let size = this.#sizes.get(credentialId) ?? MOST_KEPT_BYTES
    // Measures what is not known, and again what seems too much: responses that have expired may be included.
    if (size + bytes > MOST_KEPT_BYTES) size = this.#measure(credentialId)
    if (size + bytes > MOST_KEPT_BYTES) {
      // More than needed, so that this is not done for every response.
      this.#forgetOldest(credentialId, Math.min(MOST_KEPT_BYTES / 2, MOST_KEPT_BYTES - bytes))
      size = this.#measure(credentialId)
    }
    if (this.#sizes.size >= MAX_MEASURED) this.#sizes.clear()
    this.#sizes.set(credentialId, size + bytes)
  }

  #measure(credentialId: string): number {
    const found = this.#queries
      .select({ size: sql<number | null>`sum(length(${idempotency.body}))` })
      .from(idempotency)
      .where(eq(idempotency.apiKeyId, credentialId))
      .get()
    return found?.size ?? 0
  }

  /** Forgets all responses of a credential but the newest ones, of at most `most` bytes. */
  #forgetOldest(credentialId: string, most: number): void {
    const { apiKeyId, key, body, createdAt } = idempotency
    const newer = sql`SELECT ${key} AS key, sum(length(${body})) OVER (ORDER BY ${createdAt} DESC, ${key}) AS size
      FROM ${idempotency} WHERE ${apiKeyId} = ${credentialId} AND ${body} IS NOT NULL`
    this.#queries
      .update(idempotency)
      .set({ body: null })
      .where(
        and(eq(apiKeyId, credentialId), sql`${key} IN (SELECT key FROM (${newer}) WHERE size > ${most})`),
      )
      .run()
  }
}
