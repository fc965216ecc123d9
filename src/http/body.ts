import { BerthError, badRequest } from '../errors.ts'
import { checkUnicode, decodeText, parseExactJson } from './json.ts'
import { type Form, type FormShape, isForm, parseForm } from './multipart.ts'
import { checkContentCoding } from './request-checks.ts'

/** Largest body of a request, in bytes. @bound user */
export const BODY_LIMIT = 32 * 1024 * 1024

/** Bytes up to which a body of a declared length is read as one, which is quicker. */
const READ_WHOLE = 64 * 1024

const UNCOUNTED: BodyCounter = { add() {}, heard() {} }

/** Matches JSON (RFC 8259) and types with its structured suffix (RFC 6839). */
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i

/** Receives the read body of a request: its bytes, or a form's fields as JSON. */
export type BodyWitness = (content: Uint8Array | string, type: string) => void

/** Hears of a body that is read. */
export interface BodyCounter {
  /** Hears of bytes that are to be kept: of the whole body before it is read, or of each part. It throws to refuse them. */
  add(bytes: number): void
  /** Hears that a part of the body has come. */
  heard(): void
}

/** What a body's reader tells others of it. */
export interface BodyListeners {
  readonly witness?: BodyWitness | undefined
  readonly counter?: BodyCounter | undefined
}

/**
 * Reads a request's body, which must be a JSON object of at most `limit` bytes.
 *
 * @returns the object, or undefined if there is no body, or only white space
 * @throws BerthError 413 over the limit; 415 for a content coding; 400 for another content type, malformed JSON or another value
 */
export async function readJsonBody(
  request: Request,
  limit: number,
  { witness, counter }: BodyListeners = {},
): Promise<object | undefined> {
  const bytes = await readBytes(request, limit, counter)
  if (isBlank(bytes)) return undefined
  const type = typeOf(request)
  witness?.(bytes, type)
  return parseObject(bytes, type, 'application/json')
}

/**
 * Reads the body of an operation that also takes a form: a JSON object, or a form with the same fields and a file, of
 * at most `limit` bytes in total.
 *
 * @returns no value if there is no body
 * @throws BerthError 413 over the limit; 415 for a content coding; 400 for another content type, malformed JSON or a malformed
 * form
 */
export async function readFormBody(
  request: Request,
  limit: number,
  shape: FormShape,
  { witness, counter }: BodyListeners = {},
): Promise<Omit<Form, 'value'> & { value: object | undefined }> {
  const bytes = await readBytes(request, limit, counter)
  if (isBlank(bytes)) return { value: undefined, file: null }
  const type = typeOf(request)
  if (isForm(type)) {
    const form = parseForm(bytes, type, shape)
    if (witness) witness(JSON.stringify(form.value), type)
    return form
  }
  witness?.(bytes, type)
  return {
    value: parseObject(bytes, type, 'application/json" or "Content-Type: multipart/form-data'),
    file: null,
  }
}

/** Reports whether a body has nothing but white space (RFC 8259, 2), which counts as none. */
const isBlank = (bytes: Uint8Array): boolean =>
  bytes.every((byte) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09)

const typeOf = (request: Request): string => request.headers.get('content-type') ?? ''

function parseObject(bytes: Uint8Array, type: string, expected: string): object {
  if (!JSON_TYPE.test(type)) {
    throw badRequest(
      `The body must be sent with "Content-Type: ${expected}", got ${type ? `"${type}"` : 'none'}.`,
    )
  }
  const text = decodeText(bytes, 'The body')
  const value = parseExactJson(text, 'The body')
  checkUnicode(text, value)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw badRequest(
    `The body must be a JSON object, got ${value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`}.`,
  )
}

/**
 * Reads a request's body, of at most `limit` bytes.
 *
 * @returns no bytes if there is no body
 * @throws BerthError 413 over the limit, 415 for a content coding
 */
export async function readBytes(request: Request, limit: number, counter?: BodyCounter): Promise<Uint8Array> {
  checkContentCoding(request)
  return await readCodedBytes(request, limit, counter)
}

/**
 * Reads a request's body as it was sent, encoded or not.
 *
 * @throws BerthError 413 over the limit
 */
export async function readCodedBytes(
  request: Request,
  limit: number,
  counter: BodyCounter = UNCOUNTED,
): Promise<Uint8Array> {
  const declared = request.headers.get('content-length')
  if (declared !== null && Number(declared) > limit) throw tooLarge(limit)
  if (declared === '0') return new Uint8Array()
  if (declared === null) return await readStream(request.body, limit, counter)
  const size = Number(declared)
  counter.add(size)
  return size <= READ_WHOLE || request.body === null
    ? await request.bytes()
    : await readParts(request.body, size, counter)
}

/** Reads a body of a declared length part by part. */
async function readParts(
  stream: ReadableStream<Uint8Array>,
  size: number,
  counter: BodyCounter,
): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafe(size)
  let length = 0
  for await (const part of stream) {
    counter.heard()
    bytes.set(part, length)
    length += part.byteLength
  }
  return bytes.subarray(0, length)
}

/** Reads a body of undeclared length. Stops as soon as it is over the limit. */
async function readStream(
  stream: ReadableStream<Uint8Array> | null,
  limit: number,
  counter: BodyCounter,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream ?? []) {
    size += chunk.byteLength
    if (size > limit) throw tooLarge(limit)
    counter.heard()
    counter.add(chunk.byteLength)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const tooLarge = (limit: number): BerthError =>
  new BerthError(
    'payload_too_large',
    `The body is over the limit of ${limit} bytes. Send it in smaller parts.`,
  )

/** Yields a body to its end. @throws BerthError 400 if the client disconnects before */
export async function* readWhole(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const parts = content[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { done, value } = await parts.next().catch(() => {
        throw badRequest('The body could not be read to its end.')
      })
      if (done) return
      yield value
    }
  } finally {
    await parts.return?.()
  }
}
