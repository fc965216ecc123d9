import { Elysia } from 'elysia'
import { BerthError } from '../errors.ts'
import { type BodyWitness, readFormBody, readJsonBody } from './body.ts'
import { type Caller, isScoped } from './caller.ts'
import type { CredentialChanges } from './credential-changes.ts'
import type { FormShape } from './multipart.ts'
import { eventStream, type StreamRun } from './sse.ts'

/**
 * What a key needs for an operation: `account` for one that is account-level (specification,
 * "Authentication" 6), `resource` for one that any valid key may call on what it reaches.
 */
export type Access = 'account' | 'resource'

/** What an operation's route declares: its access, and the form that it takes in place of JSON where it does. */
export type Admission = Access | { readonly access: Access; readonly form: FormShape }

/** Is shown what was read of a request's body, with where its answer's settings are kept. */
export type SeesBody = (set: { headers: object }, ...seen: Parameters<BodyWitness>) => void

/** Finds the caller behind the bearer credential of a request, or null where it is none of ours. */
export type Authenticate = (credential: string, request: Request) => Caller | null

/** Who sent a request, and how many changes of credentials there were when that was asked. */
interface Known {
  readonly caller: Caller
  readonly since: number
}

/**
 * Who sends the requests under way. Asked before anything else of a request is read, and again only where its credential
 * has changed since: a body may take its time.
 */
export class Callers {
  readonly #authenticate: Authenticate
  readonly #changes: CredentialChanges
  readonly #known = new WeakMap<Request, Known>()

  constructor(authenticate: Authenticate, changes: CredentialChanges) {
    this.#authenticate = authenticate
    this.#changes = changes
  }

  /**
   * The caller of a request that needs this access; the same object as long as its credential is what it was.
   *
   * @throws BerthError 401, 403 for a scoped key
   */
  admit(request: Request, needed: Access): Caller {
    const known = this.#known.get(request)
    const stands = known && !this.#changes.hasChanged(known.caller.credentialId, known.since)
    const caller = stands ? known.caller : this.#identify(request)
    if (needed === 'account' && isScoped(caller)) {
      throw new BerthError(
        'forbidden',
        'This credential reaches only some servers or projects. Use an API key that reaches the whole account.',
      )
    }
    return caller
  }

  #identify(request: Request): Caller {
    const since = this.#changes.count
    const caller = callerOf(request, this.#authenticate)
    this.#known.set(request, { caller, since })
    return caller
  }

  /** Lets a request in as part of another one, which was: also where its token has expired since. */
  vouch(part: Request, whole: Request): void {
    const known = this.#known.get(whole)
    if (known) this.#known.set(part, known)
  }

  /** The caller of a request that was admitted; undefined for one that needs no credential. */
  of(request: Request): Caller | undefined {
    return this.#known.get(request)?.caller
  }
}

/** The files that came with the requests under way. */
export class Uploads {
  readonly #files = new WeakMap<Request, Uint8Array>()

  keep(request: Request, file: Uint8Array): void {
    this.#files.set(request, file)
  }

  /** The file's bytes, or null where none came. */
  of(request: Request): Uint8Array | null {
    return this.#files.get(request) ?? null
  }
}

/** What the macro `access` is made of. */
export interface AccessParts {
  callers: Callers
  uploads: Uploads
  /** The largest body in bytes. */
  bodyLimit: number
  changes: CredentialChanges
  sees?: SeesBody | undefined
}

/**
 * The macro `access` that every operation carries. It checks the credential and whether its key may do
 * account-level work before anything else of the request is read: the contract's order is 401, 403, 400, 404. Elysia reads bodies before it runs
 * `transform`, so an operation with a body is admitted in `parse`, one without in `transform`. What
 * `parse` throws reaches the error handler as the cause of Elysia's ParseError.
 *
 * Hooks take the context apart and never hand it on whole: Elysia reads their source to learn which
 * parts they use, and complains on standard output about one it cannot follow.
 */
export function accessControl({ callers, uploads, bodyLimit, changes, sees }: AccessParts) {
  return new Elysia({ name: 'berth/access' }).macro({
    access(admission: Admission) {
      const { access: needed, form } =
        typeof admission === 'string' ? { access: admission, form: null } : admission
      return {
        async parse({ request, set }) {
          callers.admit(request, needed)
          const witness: BodyWitness | undefined = sees && ((content, type) => sees(set, content, type))
          // Where this returns undefined, Elysia tries its own parsers on a body that is gone.
          if (form === null) return (await readJsonBody(request, bodyLimit, witness)) ?? null
          const { value, file } = await readFormBody(request, bodyLimit, form, witness)
          if (file) uploads.keep(request, file)
          return value ?? null
        },
        transform({ request }) {
          callers.admit(request, needed)
        },
        resolve({ request }) {
          const caller = callers.admit(request, needed)
          const upload = uploads.of(request)
          /** Answers with an event stream, which ends with what the caller's credential is now. */
          const stream = (run: StreamRun): Response => {
            if (callers.admit(request, needed) !== caller) throw credentialChanged()
            return eventStream(run, (end) =>
              changes.watch(caller.credentialId, () => end(credentialChanged())),
            )
          }
          return { caller, upload, stream }
        },
      }
    },
  })
}

const credentialChanged = (): BerthError =>
  new BerthError(
    'missing_or_invalid_api_key',
    'The API key or access token that began this stream was ended, or its scope was changed. Begin again with one that is valid now.',
  )

/** The plugin that resources mount to get `access` and, with it, `caller`, `upload` and `stream`. */
export type AccessControl = ReturnType<typeof accessControl>

/** Whether a request brings a credential of the scheme that is wanted, as it may be wrong (RFC 6750, 3.1). */
export const sentToken = (request: Request): boolean =>
  /^bearer\b/i.test(request.headers.get('authorization') ?? '')

/** The credential of `Authorization: Bearer TOKEN`, the scheme in any case, or null (RFC 6750, 2.1). */
export function bearerOf(request: Request): string | null {
  const header = request.headers.get('authorization')
  return (header && /^bearer +([\x21-\x7e]+)$/i.exec(header)?.[1]) || null
}

function callerOf(request: Request, authenticate: Authenticate): Caller {
  const credential = bearerOf(request)
  const caller = credential ? authenticate(credential, request) : null
  if (caller) return caller
  throw new BerthError(
    'missing_or_invalid_api_key',
    credential?.startsWith('admin_')
      ? 'That is an admin token, which only the control API (/_berth) takes. Send an API key here (sk_live_…).'
      : credential
        ? 'The credential is not valid here. Check that the API key or access token belongs to this instance, and that it was not deleted and has not expired.'
        : 'Send an API key in the header "Authorization: Bearer sk_live_…".',
  )
}
