import { BerthError, badRequest } from '../errors.ts'

/** Bytes that a request's body may have. */
export const BODY_LIMIT = 32 * 1024 * 1024

/**
 * How deep arrays and objects of a body may lie in each other (RFC 8259, 9): what looks at a value goes
 * down level by level, and a small body would otherwise keep the service busy for seconds.
 */
const DEPTH_LIMIT = 64

/** RFC 8259 and its structured suffixes (RFC 6839). */
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i

/**
 * Reads a request's body: a JSON object, as every operation's is, in at most `limit` bytes.
 *
 * @returns the object, or undefined where there is no body
 * @throws BerthError 413 over the limit, 400 for another content type, malformed JSON or no object
 */
export async function readJsonBody(request: Request, limit: number): Promise<object | undefined> {
  const declared = request.headers.get('content-length')
  if (declared !== null && Number(declared) > limit) throw tooLarge(limit)
  if (declared === '0') return undefined
  const bytes = declared === null ? await readStream(request.body, limit) : await request.bytes()
  if (bytes.length === 0) return undefined
  const type = request.headers.get('content-type') ?? ''
  if (!JSON_TYPE.test(type)) {
    throw badRequest(
      `The body must be sent with "Content-Type: application/json", got ${type ? `"${type}"` : 'none'}.`,
    )
  }
  const text = decodeText(bytes)
  if (isDeeperThan(text, DEPTH_LIMIT)) {
    throw badRequest(`The body is nested too deeply: expected at most ${DEPTH_LIMIT} levels.`)
  }
  const value = parseJson(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw badRequest(
    `The body must be a JSON object, got ${value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`}.`,
  )
}

/** Whether brackets are open beyond the limit at any point of a JSON text; what stands in strings is passed over. */
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

/** Where the string that begins at a quote ends: the next quote with an even number of backslashes before it. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw badRequest(`The body is not valid JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** RFC 8259, 8.1: JSON between systems is UTF-8. */
function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw badRequest('The body is not valid UTF-8, which JSON is written in.')
  }
}

/** A body of undeclared length, given up as soon as it is over the limit. */
async function readStream(stream: ReadableStream<Uint8Array> | null, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream ?? []) {
    size += chunk.byteLength
    if (size > limit) throw tooLarge(limit)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const tooLarge = (limit: number): BerthError =>
  new BerthError(
    'payload_too_large',
    `The body is over the limit of ${limit} bytes. Send it in smaller parts.`,
  )
