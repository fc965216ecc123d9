import { BerthError, badRequest } from '../errors.ts'
import { percentDecoded } from '../runtime/decode.ts'
import { repeatedName } from '../runtime/validation/validation-error.ts'

/**
 * Refuses an admitted request of which something would be read otherwise than it was sent, before anything is done: see
 * `checkQuery` and `checkContentCoding`.
 */
export function checkRequest(request: Request): void {
  checkQuery(request.url)
  checkContentCoding(request)
}

/**
 * Refuses a query with malformed percent-encoding (RFC 3986, 2.1; RFC 3629), or with a parameter that comes twice. A
 * parser would take the first as it is, and of the second the last.
 *
 * @throws BerthError 400 that names the parameter
 */
export function checkQuery(url: string): void {
  const start = url.indexOf('?')
  if (start === -1) return
  const fault = findFormFault(url.slice(start + 1))
  if (fault !== null) throw badRequest(describeFormFault(fault, 'query'))
}

/**
 * Hook of routes that need no credential: refuses a query as `checkQuery` does. Must destructure its context: Elysia reads
 * its source to find the parts that it uses.
 */
export const refuseBadQuery = ({ request }: { request: Request }): void => checkQuery(request.url)

/** A fault of a text of the type application/x-www-form-urlencoded, of which queries are too. */
interface FormFault {
  /** The parameter, decoded if that is possible. */
  readonly name: string
  /** Whether it comes twice, or is malformed. */
  readonly isRepeated: boolean
}

/**
 * Finds the first parameter that is malformed or comes twice.
 *
 * @param mayRepeat reports whether a parameter may come twice
 */
export function findFormFault(
  form: string,
  mayRepeat: (name: string) => boolean = () => false,
): FormFault | null {
  if (form === '') return null
  const names = new Set<string>()
  for (const pair of form.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const written = equals === -1 ? pair : pair.slice(0, equals)
    const name = formDecoded(written)
    if (name === null || (equals !== -1 && formDecoded(pair.slice(equals + 1)) === null)) {
      return { name: name ?? written, isRepeated: false }
    }
    if (names.has(name) && !mayRepeat(name)) return { name, isRepeated: true }
    names.add(name)
  }
  return null
}

/** Describes a fault. @param part the part of the request that has the parameters */
export function describeFormFault({ name, isRepeated }: FormFault, part: 'query' | 'body'): string {
  const shown = name.length > 50 ? `${name.slice(0, 49)}…` : name
  if (isRepeated) return repeatedName([shown]).describe(part)
  return `"${shown}" in the ${part} is malformed: "%" and two hexadecimal digits stand for a byte, and the bytes must be UTF-8. A percent sign is %25.`
}

/** Decodes a name or a value; returns null if it is malformed. */
function formDecoded(text: string): string | null {
  const spaced = text.replaceAll('+', ' ')
  return spaced.includes('%') ? percentDecoded(spaced) : spaced
}

/** The header of a 415: the only coding of bodies that is accepted (RFC 9110, 15.5.16). */
export const ACCEPTED_CODING = { 'accept-encoding': 'identity' } as const

/**
 * Refuses a request whose body is encoded in some way, such as compressed (RFC 9110, 8.4 and 15.5.16).
 *
 * @throws BerthError 415
 */
export function checkContentCoding(request: Request): void {
  const codings = request.headers.get('content-encoding')
  if (codings === null) return
  const other = codings
    .split(',')
    .map((coding) => coding.trim())
    .find((coding) => coding !== '' && coding.toLowerCase() !== 'identity')
  if (other === undefined) return
  throw new BerthError(
    'unsupported_media_type',
    `A body with "Content-Encoding: ${other.slice(0, 50)}" is not accepted. Send it as it is, without that header.`,
  )
}
