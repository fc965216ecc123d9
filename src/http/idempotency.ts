import { and, eq, lt } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { badRequest } from '../errors.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Cipher } from '../storage/cipher.ts'
import type { Queries } from '../storage/database.ts'
import type { Callers, Uploads } from './access.ts'
import type { Caller } from './caller.ts'
import { idempotency } from './idempotency-table.ts'
import { wantsEventStream } from './sse.ts'

const KEPT_MS = 24 * 3_600_000
const MAX_KEY = 255

/** A request that begins, with where its response's settings are kept. */
interface Begun {
  request: Request
  path: string
  body: unknown
  set: { status?: number | string; headers: Record<string, string | number | string[]> }
}

/** A POST under way with a key: others with the same key wait for it. */
interface Turn {
  name: string
  key: string
  hash: Buffer
  ended: Promise<void>
  end(): void
}

/**
 * `Idempotency-Key` on POST: the same key with the same request within 24 hours gets the first
 * success again, unexecuted; with another request, 400. A request that failed, or whose client was
 * gone before the answer, may be tried again. An answer that streams is not kept, but its key is used.
 *
 * Answers are kept for each API key apart, so that a scoped key gets none that another key may see, and
 * sealed, since some carry secrets. So do requests: what is kept of one tells nothing without the master key.
 *
 * @param accountExists reports whether an account has not been deleted
 * @returns the plugin, and what to call for each request that fails
 */
export function idempotencyKeys(
  queries: Queries,
  cipher: Cipher,
  clock: Clock,
  callers: Callers,
  uploads: Uploads,
  accountExists: (accountId: string) => boolean,
) {
  const byName = new Map<string, Turn>()
  const byRequest = new WeakMap<Request, Turn>()

  const stored = (caller: Caller, key: string) =>
    queries
      .select()
      .from(idempotency)
      .where(and(eq(idempotency.apiKeyId, caller.credentialId), eq(idempotency.key, key)))
      .get()

  const plugin = new Elysia({ name: 'berth/idempotency' })
    .onBeforeHandle({ as: 'global' }, ({ request, path, body, set }) => {
      // Every request passes here: those without a key pay for no promise.
      if (request.method !== 'POST' || !callers.of(request)) return
      const key = request.headers.get('idempotency-key')
      // Elysia reads its hooks' source: it waits for what a hook returns only if it sees `return` before a call.
      if (key !== null) return begin(key, { request, path, body, set })
    })
    .onAfterHandle({ as: 'global' }, ({ request, responseValue, set }) => {
      if (request.method !== 'POST') return
      keep(request, responseValue, set.status)
      end(request)
    })
  return { plugin, end }

  async function begin(key: string, { request, path, body, set }: Begun): Promise<unknown> {
    if (key === '' || key.length > MAX_KEY) {
      throw badRequest(`Idempotency-Key: expected 1 to ${MAX_KEY} characters.`)
    }
    const stream = wantsEventStream(request.headers.get('accept'))
    const hash = cipher.fingerprint(saidBy(path, stream, body, uploads.of(request)), 'idempotency')
    const name = `${callers.admit(request, 'resource').credentialId} ${key}`
    for (let turn = byName.get(name); turn; turn = byName.get(name)) await turn.ended
    // Asked again: the credential may have ended while this waited.
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
      throw badRequest('This Idempotency-Key was used for a stream, which cannot be repeated. Use a new key.')
    }
    if (first?.body) {
      set.status = first.status
      set.headers['idempotent-replayed'] = 'true'
      return JSON.parse(cipher.open(first.body, contextOf(name)))
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    const turn: Turn = { name, key, hash, ended: promise, end: resolve }
    byName.set(name, turn)
    byRequest.set(request, turn)
  }

  /** Keeps the response of a request that has succeeded. */
  function keep(request: Request, responseValue: unknown, setStatus: number | string | undefined): void {
    const turn = byRequest.get(request)
    const caller = callers.of(request)
    if (!turn || !caller || request.signal.aborted) return
    const { accountId, credentialId: apiKeyId } = caller
    // The account may have been removed while the request was under way.
    if (!accountExists(accountId)) return
    const { status, body } = answerOf(responseValue, setStatus)
    queries
      .insert(idempotency)
      .values({
        accountId,
        apiKeyId,
        key: turn.key,
        requestHash: turn.hash,
        status,
        body: body === null ? null : cipher.seal(body, contextOf(turn.name)),
        createdAt: clock.now(),
      })
      .run()
  }

  /** Lets requests with the same key go on, which wait for this one. */
  function end(request: Request): void {
    const turn = byRequest.get(request)
    if (!turn) return
    byName.delete(turn.name)
    turn.end()
  }
}

/** What a kept answer is bound to. */
const contextOf = (name: string): string => `idempotency ${name}`

/** Same path, same kind of answer, same body and same file, whatever the order in which fields came. */
function saidBy(path: string, stream: boolean, body: unknown, file: Uint8Array | null): string {
  const digest = file && new Bun.CryptoHasher('sha256').update(file).digest('hex')
  return JSON.stringify([path.replace(/\/+$/, ''), stream, canonical(body ?? {}), digest])
}

/** A JSON value with the fields of all its objects in order. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, one]) => [name, canonical(one)])
}

/** Status and JSON text of a handler's answer; no text for one that is not plain JSON. */
function answerOf(value: unknown, set: number | string | undefined): { status: number; body: string | null } {
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
