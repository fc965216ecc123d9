import { BerthError, badRequest } from '../errors.ts'
import { isTooDeep, MAX_JSON_DEPTH, parseWithLoss } from '../runtime/validation/json-faults.ts'
import { brokenText, type JsonPath, ValidationError } from '../runtime/validation/validation-error.ts'

/**
 * Parses a JSON text that somebody else checks or only keeps: of fields with the same name the last one counts.
 *
 * @param what names the text at the start of a sentence, such as `The body`
 * @throws BerthError 400 if it is malformed or nested too deeply
 */
export function parseJsonText(text: string, what: string): unknown {
  if (isTooDeep(text)) throw tooDeep(what)
  return orSyntaxError(what, () => JSON.parse(text))
}

/**
 * Parses a JSON text of a request. Nothing of it is lost silently.
 *
 * @param what names the text at the start of a sentence, such as `The body`
 * @param path the value's position in the body
 * @throws BerthError 400 if it is malformed or nested too deeply; `LossyJson` if it has a field twice or a number that
 * cannot be kept, which it names
 */
export function parseExactJson(text: string, what: string, path: JsonPath = []): unknown {
  const parsed = orSyntaxError(what, () => parseWithLoss(text))
  if (parsed === null) throw tooDeep(what)
  if (parsed.loss !== null) throw new LossyJson(parsed.loss, path)
  return parsed.value
}

/** Refuses a JSON text that is valid and cannot be kept as it was sent. */
export class LossyJson extends BerthError {
  constructor(loss: ValidationError, path: JsonPath) {
    super(
      'bad_request',
      new ValidationError([...path, ...loss.path], loss.reason, loss.kind).describe('body'),
    )
  }
}

const tooDeep = (what: string): BerthError =>
  badRequest(`${what} is nested too deeply: expected at most ${MAX_JSON_DEPTH} levels.`)

function orSyntaxError<Value>(what: string, parse: () => Value): Value {
  try {
    return parse()
  } catch (error) {
    throw badRequest(`${what} is not valid JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/**
 * Decodes text that must be UTF-8, as JSON between systems is (RFC 8259, 8.1).
 *
 * @throws BerthError 400
 */
export function decodeText(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw badRequest(`${what} is not valid UTF-8.`)
  }
}

/** Matches an escaped surrogate, which is half of a character (RFC 8259, 7). */
const SURROGATE = /\\u[dD][89a-fA-F]/

/**
 * Refuses text with a lone surrogate. Values are stored, signed and written as UTF-8, which cannot represent one.
 *
 * @param text the JSON text of the value: without such escapes it contains none
 * @param path the value's position in the body
 * @throws BerthError 400 that names the field
 */
export function checkUnicode(text: string, value: unknown, path: JsonPath = []): void {
  const broken = SURROGATE.test(text) ? loneSurrogatePath(value, path) : null
  if (broken) throw badRequest(brokenText(broken).describe('body'))
}

/** Returns the path of the first text with a lone surrogate, names of fields included; null if there is none. */
export function loneSurrogatePath(value: unknown, path: JsonPath = []): JsonPath | null {
  if (typeof value === 'string') return value.isWellFormed() ? null : path
  if (typeof value !== 'object' || value === null) return null
  for (const [key, inner] of Object.entries(value)) {
    if (!key.isWellFormed()) return [...path, key.toWellFormed()]
    const broken = loneSurrogatePath(inner, [...path, Array.isArray(value) ? Number(key) : key])
    if (broken) return broken
  }
  return null
}
