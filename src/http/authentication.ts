/** Finds the caller of a request by key, token or session, and checks what the caller may reach. */
import { Elysia } from 'elysia'
import { BerthError } from '../errors.ts'
import { ArrivingBodies } from './arriving-bodies.ts'
import { type BodyListeners, type BodyWitness, readFormBody, readJsonBody } from './body.ts'
import { type ByteStreamRun, byteStream } from './byte-stream.ts'
import { type Caller, isScoped } from './caller.ts'
import type { CredentialChanges } from './credential-changes.ts'
import type { FormShape } from './multipart.ts'
import { checkRequest } from './request-checks.ts'
import { eventStream, type StreamRun } from './sse.ts'

/**
 * The access that an operation requires: `account` for account-level operations (specification, "Authentication" 6),
 * `resource` for operations that any valid key may call on the resources that it reaches.
 */
export type Access = 'account' | 'resource'

/**
 * The declaration of an operation's route: its access, and its form if it takes one in place of JSON, or that its handler
 * reads the body itself, as bytes.
 */
export type RouteAdmission =
  | Access
  | { readonly access: Access; readonly form?: FormShape | undefined; readonly readsBytes?: boolean }

/** Receives the read body of a request, with the settings of its response. */
type BodyListener = (set: { headers: object }, ...seen: Parameters<BodyWitness>) => void

/** Returns the caller of a bearer credential, or null if it is invalid. */
export type Authenticate = (credential: string, request: Request) => Caller | null

/** A sender that was identified by something else than a bearer token. */
export interface Identity {
  readonly caller: Caller
  /**
   * Checks the credential again.
   *
   * @throws BerthError 401 if it has ended
   */
  recheck(): void
  /** Calls `ended` when the credential ends by its age, unless the returned function is called before. */
  whenExpired(ended: () => void): () => void
}

/** An authenticated caller, and the count of credential changes at that time. */
interface KnownCaller {
  readonly caller: Caller
  readonly since: number
  /** Null for a bearer token. */
  readonly identity: Identity | null
}

/**
 * Authenticates the callers of running requests, before anything else of a request is read. Authenticates again if
 * the credential has changed since, because a body may take long.
 */
export class Callers {
  /** The bodies that callers send. */
  readonly bodies: ArrivingBodies
  readonly #authenticate: Authenticate
  readonly #changes: CredentialChanges
  readonly #known = new WeakMap<Request, KnownCaller>()
  readonly #refused = new WeakMap<Request, BerthError>()

  /**
   * @param expire closes the connection of a request whose body does not come
   * @param silenceMs milliseconds without a byte after which a body is given up; by default those of `ArrivingBodies`
   */
  constructor(
    authenticate: Authenticate,
    changes: CredentialChanges,
    expire: (request: Request) => void,
    silenceMs?: number,
  ) {
    this.bodies = new ArrivingBodies(expire, silenceMs)
    this.#authenticate = authenticate
    this.#changes = changes
  }

  /**
   * Returns the caller of a request that needs this access. The object stays the same as long as its credential does
   * not change.
   *
   * @throws BerthError 401; 403 for a scoped key
   */
  admit(request: Request, needed: Access): Caller {
    const refusal = this.#refused.get(request)
    if (refusal) throw refusal
    const known = this.#known.get(request)
    const stands = known && !this.#hasChanged(known)
    const caller = stands ? known.caller : this.#identify(request, known?.identity ?? null)
    if (needed === 'account' && isScoped(caller)) {
      throw new BerthError(
        'forbidden',
        'This credential reaches only some servers or projects. Use an API key that reaches the whole account.',
      )
    }
    return caller
  }

  #identify(request: Request, identity: Identity | null): Caller {
    const since = this.#changes.count
    identity?.recheck()
    const caller = identity?.caller ?? callerOf(request, this.#authenticate)
    this.#known.set(request, { caller, since, identity })
    return caller
  }

  #hasChanged({ caller, since }: KnownCaller): boolean {
    if (since === this.#changes.count) return false
    return credentialsOf(caller).some((id) => this.#changes.hasChanged(id, since))
  }

  /**
   * Identifies the sender of a request that has no bearer token, by something else.
   *
   * @param identify returns null if it finds nobody; a `BerthError` that it throws refuses the request, unless that
   * needs no credential
   */
  async identifyBy(request: Request, identify: () => Promise<Identity | null>): Promise<void> {
    const since = this.#changes.count
    try {
      const identity = await identify()
      if (identity) this.#known.set(request, { caller: identity.caller, since, identity })
    } catch (error) {
      if (!(error instanceof BerthError)) throw error
      this.#refused.set(request, error)
    }
  }

  /**
   * Returns the caller of a request that `identifyBy` has identified; null for all others.
   *
   * @throws BerthError if the request was refused, or the credential has ended since
   */
  identified(request: Request): Caller | null {
    const isIdentified = this.#known.get(request)?.identity || this.#refused.has(request)
    return isIdentified ? this.admit(request, 'resource') : null
  }

  /** Reports whether `identifyBy` has identified the sender of a request. Never throws. */
  hasIdentified(request: Request): boolean {
    return Boolean(this.#known.get(request)?.identity)
  }

  /**
   * Calls `ended` when the credential of an admitted request changes or ends.
   *
   * @returns a function that ends the subscription
   */
  whileValid(request: Request, ended: () => void): () => void {
    const known = this.#known.get(request)
    if (!known) return () => {}
    const { caller, identity } = known
    const ends = credentialsOf(caller).map((id) => this.#changes.subscribe(id, ended))
    if (identity) ends.push(identity.whenExpired(ended))
    return () => {
      for (const end of ends) end()
    }
  }

  /** Admits a request as part of another that was admitted, even if its token has expired since. */
  vouch(part: Request, admitted: Request): void {
    const known = this.#known.get(admitted)
    if (known) this.#known.set(part, known)
  }

  /**
   * Returns the caller of a request that was refused before anything checked its credential; undefined without a valid
   * one.
   */
  find(request: Request): Caller | undefined {
    try {
      return this.admit(request, 'resource')
    } catch (error) {
      if (error instanceof BerthError) return undefined
      throw error
    }
  }

  /** Returns the caller of an admitted request; undefined for one that needs no credential. */
  of(request: Request): Caller | undefined {
    return this.#known.get(request)?.caller
  }
}

/** Returns the ids of all credentials that a caller's rights depend on. */
const credentialsOf = ({ credentialId, parentId }: Caller): string[] =>
  parentId === undefined ? [credentialId] : [credentialId, parentId]

/** The uploaded files of running requests. */
export class Uploads {
  readonly #files = new WeakMap<Request, Uint8Array>()

  keep(request: Request, file: Uint8Array): void {
    this.#files.set(request, file)
  }

  /** Returns the file's bytes, or null if there is no file. */
  of(request: Request): Uint8Array | null {
    return this.#files.get(request) ?? null
  }
}

/** Dependencies of the macro `access`. */
interface AccessOptions {
  callers: Callers
  uploads: Uploads
  /** The largest body in bytes. */
  bodyLimit: number
  onBody?: BodyListener | undefined
}

/**
 * Makes the macro `access` of every operation. It checks the credential, and whether its key may call account-level
 * operations, before anything else of the request is read: the contract's order is 401, 403, 400, 404. Elysia reads
 * bodies before it runs `transform`, so an operation with a body is admitted in `parse` and one without in
 * `transform`. An error thrown by `parse` reaches the error handler as the cause of Elysia's ParseError.
 *
 * Hooks must destructure the context in their parameters, and must not spread a call: Elysia reads their source to find
 * the parts that they use, and prints a warning if it cannot.
 */
export function accessControl({ callers, uploads, bodyLimit, onBody }: AccessOptions) {
  return new Elysia({ name: 'berth/access' }).macro({
    access(admission: RouteAdmission) {
      const {
        access: needed,
        form,
        readsBytes = false,
      } = typeof admission === 'string' ? { access: admission } : admission
      return {
        async parse({ request, set }) {
          const { credentialId } = callers.admit(request, needed)
          // If this returned undefined, Elysia would try its own parsers.
          if (readsBytes) return null
          const witness: BodyWitness | undefined = onBody && ((content, type) => onBody(set, content, type))
          using arriving = callers.bodies.begin(credentialId, request)
          const listeners: BodyListeners = { witness, counter: arriving }
          if (form === undefined) return (await readJsonBody(request, bodyLimit, listeners)) ?? null
          const { value, file } = await readFormBody(request, bodyLimit, form, listeners)
          if (file) uploads.keep(request, file)
          return value ?? null
        },
        transform({ request }) {
          callers.admit(request, needed)
          checkRequest(request)
        },
        resolve({ request }) {
          const caller = callers.admit(request, needed)
          const checkAgain = (): void => {
            if (callers.admit(request, needed) !== caller) throw credentialChanged()
          }
          const { whileValid, stream, streamBytes } = streamsOf(request, callers, checkAgain)
          return { caller, upload: uploads.of(request), whileValid, stream, streamBytes }
        },
      }
    },
  })
}

/**
 * Returns the functions by which the handler of an admitted request streams no longer than its credential is valid.
 *
 * @param checkAgain throws if the credential is not valid any more, before a stream begins
 */
export function streamsOf(request: Request, callers: Pick<Callers, 'whileValid'>, checkAgain: () => void) {
  return {
    /**
     * Calls `ended` if the credential changes or ends.
     *
     * @returns a function that ends the subscription
     * @throws BerthError 401 if it has changed already
     */
    whileValid(ended: () => void): () => void {
      checkAgain()
      return callers.whileValid(request, ended)
    },
    /** Responds with an event stream, which ends if the credential changes or ends. */
    stream(run: StreamRun): Response {
      checkAgain()
      return eventStream(run, (end) => callers.whileValid(request, () => end(credentialChanged())))
    },
    /** Responds with bytes of a media type. The response breaks off if the credential changes or ends. */
    streamBytes(type: string, run: ByteStreamRun): Response {
      checkAgain()
      return byteStream(type, run, (end) => callers.whileValid(request, end))
    },
  }
}

/** Returns the error that ends a stream whose credential has changed. */
export const credentialChanged = (): BerthError =>
  new BerthError(
    'missing_or_invalid_api_key',
    "The API key, access token or browser's session that began this stream was ended, or its scope was changed. Begin again with one that is valid now.",
  )

/** The plugin that resources mount to get `access`, `caller`, `upload`, `stream`, `streamBytes` and `whileValid`. */
export type AccessControl = ReturnType<typeof accessControl>

/** Reports whether a request has a credential of the bearer scheme, valid or not (RFC 6750, 3.1). */
export const sentToken = (request: Request): boolean =>
  /^bearer\b/i.test(request.headers.get('authorization') ?? '')

/** Returns the credential of `Authorization: Bearer TOKEN`, with the scheme in any case, or null (RFC 6750, 2.1). */
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
