import { badRequest } from '../errors.ts'
import { checkUnicode, decodeText, parseExactJson } from './json.ts'

/** How an operation's object is sent as a form with a file. */
export interface FormShape {
  /** The part with the file. All others are fields of the object. */
  readonly file: string
  /** The fields that are JSON. All others are text. */
  readonly json: readonly string[]
}

/** A parsed form: its object and the file's bytes. */
export interface Form {
  value: Record<string, unknown>
  file: Uint8Array | null
}

/** A part of a form: its name and its bytes. */
interface Part {
  name: string
  content: Buffer
}

/** @bound user */
const MAX_PARTS = 100
const MAX_HEADER = 8 * 1024

/** Matches a parameter of a header: its name, and its value with or without quotes. */
const PARAMETER = /;\s*([\w*-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/g

/** Reports whether a content type is that of a form. */
export const isForm = (contentType: string): boolean => /^multipart\/form-data\s*(?:;|$)/i.test(contentType)

/**
 * Parses a form (RFC 7578) strictly: every part must be understood, and the closing delimiter must be there.
 *
 * @param contentType contains the boundary
 * @throws BerthError 400 that names the part and its mistake
 */
export function parseForm(bytes: Uint8Array, contentType: string, shape: FormShape): Form {
  const form: Form = { value: {}, file: null }
  const seen = new Set<string>()
  for (const { name, content } of partsOf(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    contentType,
  )) {
    if (seen.has(name)) throw badRequest(`The form has more than one part "${shown(name)}".`)
    seen.add(name)
    if (name === shape.file) form.file = content
    else form.value = { ...form.value, [name]: fieldOf(name, content, shape) }
  }
  return form
}

function fieldOf(name: string, content: Buffer, shape: FormShape): unknown {
  const what = `The form's part "${shown(name)}"`
  const text = decodeText(content, what)
  if (!shape.json.includes(name)) return text
  const value = parseExactJson(text, what, [name])
  checkUnicode(text, value, [name])
  return value
}

function* partsOf(body: Buffer, contentType: string): Generator<Part> {
  const delimiter = Buffer.from(`\r\n--${boundaryOf(contentType)}`)
  // The first delimiter needs no line break before it.
  const first = delimiter.subarray(2)
  let at = body.subarray(0, first.length).equals(first) ? first.length : after(body, delimiter, 0)
  for (let count = 0; ; count += 1) {
    if (at === null) throw malformed('it has no closing boundary: is it complete?')
    if (body[at] === 0x2d && body[at + 1] === 0x2d) return
    if (count === MAX_PARTS) throw malformed(`it has more than ${MAX_PARTS} parts`)
    const line: number = endOfPadding(body, at)
    const headersEnd = body.indexOf('\r\n\r\n', line - 2)
    const end = body.indexOf(delimiter, line - 2)
    if (end === -1) throw malformed('it has no closing boundary: is it complete?')
    if (headersEnd === -1 || headersEnd > end || headersEnd - line > MAX_HEADER) {
      throw malformed('a part has no header that ends')
    }
    const content = body.subarray(Math.min(headersEnd + 4, end), end)
    yield { name: nameOf(decodeText(body.subarray(line, headersEnd), 'A header of the form')), content }
    at = end + delimiter.length
  }
}

function boundaryOf(contentType: string): string {
  const [, quoted, plain] =
    /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))(?:\s*;|\s*$)/i.exec(contentType) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined) throw malformed('its Content-Type names no boundary')
  return boundary
}

function after(body: Buffer, delimiter: Buffer, from: number): number | null {
  const found = body.indexOf(delimiter, from)
  return found === -1 ? null : found + delimiter.length
}

/** Returns the end of a delimiter's line. Spaces and tabs may follow the delimiter (RFC 2046, 5.1.1). */
function endOfPadding(body: Buffer, from: number): number {
  let at = from
  while (body[at] === 0x20 || body[at] === 0x09) at += 1
  if (body[at] !== 0x0d || body[at + 1] !== 0x0a) throw malformed('something follows a boundary on its line')
  return at + 2
}

function nameOf(headers: string): string {
  const line = headers.split('\r\n').find((one) => /^content-disposition\s*:/i.test(one))
  if (line === undefined) throw malformed('a part has no Content-Disposition')
  let name: string | undefined
  for (const [, parameter, escaped, plain] of line.matchAll(PARAMETER)) {
    if (parameter?.toLowerCase() === 'name') name ??= escaped?.replaceAll(/\\(.)/g, '$1') ?? plain
  }
  if (name === undefined || name === '') throw malformed('a part has no name')
  return name
}

const malformed = (why: string) => badRequest(`The body is not a valid multipart/form-data form: ${why}.`)

const shown = (name: string): string => (name.length > 60 ? `${name.slice(0, 60)}…` : name)
