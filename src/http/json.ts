import { badRequest } from '../errors.ts'
import { brokenText, type JsonPath } from '../runtime/validation/validation-error.ts'

/**
 * Deepest nesting of arrays and objects in a body (RFC 8259, 9). Validators descend level by level, so a small body
 * could otherwise keep the service busy for seconds.
 */
const DEPTH_LIMIT = 64

/**
 * Parses a JSON text.
 *
 * @param what names the text at the start of a sentence, such as `The body`
 * @throws BerthError 400 if it is malformed or nested too deeply
 */
export function parseJsonText(text: string, what: string): unknown {
  if (isDeeperThan(text, DEPTH_LIMIT)) {
    throw badRequest(`${what} is nested too deeply: expected at most ${DEPTH_LIMIT} levels.`)
  }
  try {
    return JSON.parse(text)
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
  const broken = SURROGATE.test(text) ? brokenPath(value, path) : null
  if (broken) throw badRequest(brokenText(broken).describe('body'))
}

/** Returns the path of the first text with a lone surrogate, names of fields included; null if there is none. */
export function brokenPath(value: unknown, path: JsonPath = []): JsonPath | null {
  if (typeof value === 'string') return value.isWellFormed() ? null : path
  if (typeof value !== 'object' || value === null) return null
  for (const [key, inner] of Object.entries(value)) {
    if (!key.isWellFormed()) return [...path, key.toWellFormed()]
    const broken = brokenPath(inner, [...path, Array.isArray(value) ? Number(key) : key])
    if (broken) return broken
  }
  return null
}

/** Reports whether a JSON text is nested beyond the limit. Brackets in strings do not count. */
function isDeeperThan(text: string, limit: number): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (character === '"') {
      at = endOfString(text, at)
    } else if (character === '{' || character === '[') {
      depth += 1
      if (depth > limit) return true
    } else if (character === '}' || character === ']') {
      depth -= 1
    }
  }
  return false
}

/** Returns the end of the string that begins at a quote: the next quote that is not escaped. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 0) return end
  }
  return text.length
}
