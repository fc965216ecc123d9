import { and, eq, lt, sql } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { badRequest } from '../errors.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Cipher } from '../storage/cipher.ts'
import type { Queries } from '../storage/database.ts'
import type { Callers, Uploads } from './authentication.ts'
import type { Caller } from './caller.ts'
import { idempotency } from './idempotency-table.ts'
import { wantsEventStream } from './sse.ts'

const KEPT_MS = 24 * 3_600_000
/** @bound system */
const MAX_KEY = 255

/** A request that begins, and the settings of its response. */
interface BegunRequest {
  request: Request
  path: string
  body: unknown
  set: { status?: number | string; headers: Record<string, string | number | string[]> }
}

/** A running POST with a key. Others with the same key wait for it. */
interface PendingPost {
  name: string
  key: string
  hash: Buffer
  ended: Promise<void>
  end(): void
}

/**
 * Implements `Idempotency-Key` for POST. The same request with the same key gets the first success again within 24
 * hours, without being executed; another request with the key gets 400. A request that failed, or whose client
 * disconnected before the response, may be repeated. A response that is streamed, large, or older than much that was
 * stored since, is not stored, but its key is used up.
 *
 * Responses are stored separately for each API key, so a scoped key cannot receive the response of another key. They
 * are sealed, because some contain secrets. Of requests only a keyed hash is stored, which reveals nothing without the
 * master key.
 *
 * @param accountExists reports whether an account still exists
 * @returns the plugin, and a function to call for each request that fails
 */
export function idempotencyKeys(
  queries: Queries,
  cipher: Cipher,
  clock: Clock,
  callers: Callers,
  uploads: Uploads,
  accountExists: (accountId: string) => boolean,
) {
  const kept = new KeptResponses(queries)
  const byName = new Map<string, PendingPost>()
  const byRequest = new WeakMap<Request, PendingPost>()

  const stored = (caller: Caller, key: string) =>
    queries
      .select()
      .from(idempotency)
      .where(and(eq(idempotency.apiKeyId, caller.credentialId), eq(idempotency.key, key)))
      .get()

  const plugin = new Elysia({ name: 'berth/idempotency' })
    .onBeforeHandle({ as: 'global' }, ({ request, path, body, set }) => {
      // Every request passes here. One without a key must not pay for a promise.
      if (request.method !== 'POST' || !callers.of(request)) return
      const key = request.headers.get('idempotency-key')
      // Elysia awaits the result of a hook that is not `async` only if it finds `return NAME(` in the hook's source,
      // so the call is part of the return statement. test/runtime/idempotency.test.ts fails if Elysia reads it
      // otherwise.
      if (key !== null) return begin(key, { request, path, body, set })
    })
    .onAfterHandle({ as: 'global' }, ({ request, responseValue, set }) => {
      if (request.method !== 'POST') return
      keep(request, responseValue, set.status)
      end(request)
    })
  return { plugin, end }

  async function begin(key: string, { request, path, body, set }: BegunRequest): Promise<unknown> {
    if (key === '' || key.length > MAX_KEY) {
      throw badRequest(`Idempotency-Key: expected 1 to ${MAX_KEY} characters.`)
    }
    if (request.body !== null && !request.bodyUsed) {
      throw badRequest('An Idempotency-Key cannot be used with a body that is a stream. Leave it out.')
    }
    const stream = wantsEventStream(request.headers.get('accept'))
    const hash = cipher.fingerprint(requestText(path, stream, body, uploads.of(request)), 'idempotency')
    const name = `${callers.admit(request, 'resource').credentialId} ${key}`
    for (let turn = byName.get(name); turn; turn = byName.get(name)) await turn.ended
    // Checked again: the credential may have ended during the wait.
    const caller = callers.admit(request, 'resource')
    queries
      .delete(idempotency)
      .where(lt(idempotency.createdAt, clock.now() - KEPT_MS))
      .run()
    const first = stored(caller, key)
    if (first && !first.requestHash.equals(hash)) {
      throw badRequest('This Idempotency-Key was used with another request. Use a new key for a new request.')
    }
    if (first && first.body === null) {
      throw badRequest(
        'This Idempotency-Key was used, and the request was done. The response was not kept: it was a stream, or large, or much was kept since. Look at what the request did, and use a new key for another.',
      )
    }
    if (first?.body) {
      set.status = first.status
      set.headers['idempotent-replayed'] = 'true'
      return JSON.parse(cipher.open(first.body, sealContext(name)))
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    const turn: PendingPost = { name, key, hash, ended: promise, end: resolve }
    byName.set(name, turn)
    byRequest.set(request, turn)
  }

  /** Stores the response of a successful request. */
  function keep(request: Request, responseValue: unknown, setStatus: number | string | undefined): void {
    const turn = byRequest.get(request)
    const caller = callers.of(request)
    if (!turn || !caller || request.signal.aborted) return
    const { accountId, credentialId: apiKeyId } = caller
    // The account may have been deleted meanwhile.
    if (!accountExists(accountId)) return
    const { status, body: text } = responseOf(responseValue, setStatus)
    const isKept = text !== null && Buffer.byteLength(text) <= MOST_KEPT_BYTES
    const body = isKept ? cipher.seal(text, sealContext(turn.name)) : null
    const { key, hash: requestHash } = turn
    queries.transaction(() => {
      if (body !== null) kept.makeRoom(apiKeyId, body.length)
      queries
        .insert(idempotency)
        .values({ accountId, apiKeyId, key, requestHash, status, body, createdAt: clock.now() })
        .run()
    })
  }

  /** Lets waiting requests with the same key continue. */
  function end(request: Request): void {
    const turn = byRequest.get(request)
    if (!turn) return
    byName.delete(turn.name)
    turn.end()
  }
}

/** Returns the context that binds a stored response to its key. */
const sealContext = (name: string): string => `idempotency ${name}`

/** Returns the identity of a request as text: path, kind of response, body and file. The order of fields does not matter. */
function requestText(path: string, stream: boolean, body: unknown, file: Uint8Array | null): string {
  const digest = file && new Bun.CryptoHasher('sha256').update(file).digest('hex')
  return JSON.stringify([path.replace(/\/+$/, ''), stream, canonical(body ?? {}), digest])
}

/** Returns a JSON value with the fields of all objects sorted. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, one]) => [name, canonical(one)])
}

/** Returns the status and JSON text of a handler's return value; no text if it is not plain JSON. */
function responseOf(
  value: unknown,
  set: number | string | undefined,
): { status: number; body: string | null } {
  const custom = value as { code?: number; response?: unknown } | null
  const wrapped =
    custom && typeof custom === 'object' && typeof custom.code === 'number' && 'response' in custom
  const content = wrapped ? custom.response : value
  const plain =
    typeof content === 'object' && content !== null && Object.getPrototypeOf(content) === Object.prototype
  return {
    status: wrapped ? (custom.code ?? 200) : typeof set === 'number' ? set : 200,
    body: plain ? JSON.stringify(content) : null,
  }
}

/** Bytes of the responses that are kept for a credential. A larger response is not kept. @bound client */
const MOST_KEPT_BYTES = 32 * 1024 * 1024

/** Credentials whose sizes are in memory. Others are measured again. @bound system */
const MAX_MEASURED = 1_000

/**
 * Limits the responses that are kept for each credential. Otherwise one that reaches a single server could fill the disk:
 * its requests cost nothing of the server's storage.
 */
class KeptResponses {
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
