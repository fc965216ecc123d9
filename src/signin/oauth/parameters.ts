import { badRequest } from '../../errors.ts'
import { readBytes } from '../../http/body.ts'
import { decodeText } from '../../http/json.ts'
import { describeFormFault, findFormFault } from '../../http/request-checks.ts'
import { percentDecoded } from '../../runtime/decode.ts'
import { OAuthProblem, withinLimit } from './problem.ts'

/** Largest size of a client's form, in bytes. @bound page */
const FORM_LIMIT = 16 * 1024

/** Parameters that may be repeated (RFC 8707, 2). */
const REPEATABLE = new Set(['resource'])

/** The parameters of a request. One without a value counts as left out (RFC 6749, 3.1). */
export class Parameters {
  readonly #text: string
  readonly #all: URLSearchParams

  /** @param text of the type application/x-www-form-urlencoded */
  constructor(text: string) {
    this.#text = text
    this.#all = new URLSearchParams(text)
  }

  /** Returns a parameter, or null if it is left out. */
  get(name: string): string | null {
    return this.#all.get(name) || null
  }

  /** Returns all values of a parameter. */
  getAll(name: string): string[] {
    return this.#all.getAll(name).filter((value) => value !== '')
  }

  /** Reports whether a parameter is repeated that must not be (RFC 6749, 3.1). */
  isRepeated(name: string): boolean {
    return this.#all.getAll(name).length > 1
  }

  /**
   * Refuses parameters that are malformed, or that are repeated and must not be (RFC 6749, 3.1).
   *
   * @throws OAuthProblem 400
   */
  check(part: 'query' | 'body'): void {
    const fault = findFormFault(this.#text, (name) => REPEATABLE.has(name))
    if (fault !== null) throw new OAuthProblem('invalid_request', describeFormFault(fault, part))
  }
}

/**
 * Reads the form that a client sends (RFC 6749, 3.2). The query is ignored: credentials do not belong in a URL.
 *
 * @throws OAuthProblem 400 for a malformed or repeated parameter, 413 over the limit; BerthError 400 for another content
 * type, 415 for a content coding
 */
export async function readClientForm(request: Request): Promise<Parameters> {
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) {
    throw badRequest('The body must be sent with Content-Type: application/x-www-form-urlencoded.')
  }
  const text = decodeText(
    await withinLimit('The form', FORM_LIMIT, readBytes(request, FORM_LIMIT)),
    'The body',
  )
  const form = new Parameters(text)
  form.check('body')
  return form
}

/** A client's identification. */
export interface ClientCredentials {
  clientId: string
  /** Null for a public client. */
  secret: string | null
  /** Whether both were sent in the Authorization header. */
  isBasic: boolean
}

/**
 * Reads how a client identifies itself: by HTTP Basic or in the form (RFC 6749, 2.3.1).
 *
 * @throws OAuthProblem 401 if the credentials are missing or unreadable, 400 if they are sent twice
 */
export function credentialsOf(request: Request, form: Parameters): ClientCredentials {
  const header = request.headers.get('authorization')
  const named = form.get('client_id')
  const secret = form.get('client_secret')
  if (header === null) {
    if (named === null) throw unknownClient('Name the client with client_id.')
    return { clientId: named, secret, isBasic: false }
  }
  const basic = readBasic(header)
  if (!basic) throw unknownClient('The Authorization header holds no credentials of a client.')
  if (secret !== null || (named !== null && named !== basic.clientId)) {
    throw new OAuthProblem('invalid_request', 'Send the credentials of the client in only one way.')
  }
  return { ...basic, isBasic: true }
}

/** Both parts are form-encoded before they are joined. */
function readBasic(header: string): { clientId: string; secret: string | null } | null {
  const encoded = /^basic +([A-Za-z0-9+/=_-]+)$/i.exec(header)?.[1]
  if (!encoded) return null
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  if (colon === -1) return null
  const [clientId = '', secret = ''] = [text.slice(0, colon), text.slice(colon + 1)].map(decode)
  return { clientId, secret: secret || null }
}

const decode = (text: string): string => percentDecoded(text.replaceAll('+', ' ')) ?? ''

const unknownClient = (message: string): OAuthProblem =>
  new OAuthProblem('invalid_client', message, 401, { 'www-authenticate': 'Basic realm="berth"' })
