import { Elysia } from 'elysia'
import { type Caller, isScoped } from '../accounts/caller.ts'
import { BerthError } from '../errors.ts'
import { type BodyWitness, readFormBody, readJsonBody } from './body.ts'
import type { FormShape } from './multipart.ts'

/**
 * What a key needs for an operation: `account` for one that is account-level (specification,
 * "Authentication" 6), `resource` for one that any valid key may call on what it reaches.
 */
export type Access = 'account' | 'resource'

/** What an operation's route declares: its access, and the form that it takes in place of JSON where it does. */
export type Admission = Access | { readonly access: Access; readonly form: FormShape }

/** Is shown what was read of a request's body, with where its answer's settings are kept. */
export type SeesBody = (set: { headers: object }, ...seen: Parameters<BodyWitness>) => void

/** Finds the caller behind a bearer credential, or null where it is none of ours. */
export type Authenticate = (credential: string) => Caller | null

/** Who sends the requests under way: asked once for each, before anything else of it is read. */
export class Callers {
  readonly #authenticate: Authenticate
  readonly #known = new WeakMap<Request, Caller>()

  constructor(authenticate: Authenticate) {
    this.#authenticate = authenticate
  }

  /** The caller of a request that needs this access. @throws BerthError 401, 403 for a scoped key */
  admit(request: Request, needed: Access): Caller {
    const caller = this.#known.get(request) ?? this.#identify(request)
    if (needed === 'account' && isScoped(caller)) {
      throw new BerthError(
        'forbidden',
        'This API key reaches only some servers or projects. Use a key that reaches the whole account.',
      )
    }
    return caller
  }

  #identify(request: Request): Caller {
    const caller = callerOf(request, this.#authenticate)
    this.#known.set(request, caller)
    return caller
  }

  /** The caller of a request that was admitted; undefined for one that needs no credential. */
  of(request: Request): Caller | undefined {
    return this.#known.get(request)
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

/**
 * The macro `access` that every operation carries. It checks the credential and whether its key may do
 * account-level work before anything else of the request is read: the contract's order is 401, 403, 400, 404. Elysia reads bodies before it runs
 * `transform`, so an operation with a body is admitted in `parse`, one without in `transform`. What
 * `parse` throws reaches the error handler as the cause of Elysia's ParseError.
 *
 * Hooks take the context apart and never hand it on whole: Elysia reads their source to learn which
 * parts they use, and complains on standard output about one it cannot follow.
 */
export function accessControl(callers: Callers, uploads: Uploads, bodyLimit: number, sees?: SeesBody) {
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
        resolve: ({ request }) => ({
          caller: callers.admit(request, needed),
          upload: uploads.of(request),
        }),
      }
    },
  })
}

/** The plugin that resources mount to get `access` and, with it, `caller` and `upload`. */
export type AccessControl = ReturnType<typeof accessControl>

/** The credential of `Authorization: Bearer TOKEN`, the scheme in any case, or null (RFC 6750, 2.1). */
export function bearerOf(request: Request): string | null {
  const header = request.headers.get('authorization')
  return (header && /^bearer +([\x21-\x7e]+)$/i.exec(header)?.[1]) || null
}

function callerOf(request: Request, authenticate: Authenticate): Caller {
  const credential = bearerOf(request)
  const caller = credential ? authenticate(credential) : null
  if (caller) return caller
  throw new BerthError(
    'missing_or_invalid_api_key',
    credential
      ? 'The API key is not valid here. Check that it belongs to this instance and has not been deleted.'
      : 'Send an API key in the header "Authorization: Bearer sk_live_…".',
  )
}
