import { badRequest } from '../../errors.ts'
import { readBytes } from '../../http/body.ts'
import { decodeText } from '../../http/json.ts'
import { describeFormFault, findFormFault } from '../../http/request-checks.ts'
import { OAuthProblem, withinLimit } from './problem.ts'

/** Largest size of a client's form, in bytes. */
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
