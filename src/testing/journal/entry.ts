import type { Caller } from '../../http/caller.ts'
import { parseJsonText } from '../../http/json.ts'
import type { OwnClient } from '../../http/own-client.ts'
import type { FaultEffect } from '../faults/fault.ts'

/** Most bytes of a body that are kept. @bound client */
const MAX_KEPT_BODY = 64 * 1024

/** The content type of JSON responses. */
export const JSON_TYPE = 'application/json;charset=utf-8'

/** A body or its beginning: as received, or as text. */
export interface KeptBody {
  readonly content: Uint8Array | string
  /** Whether the rest was dropped. */
  readonly isCut: boolean
  /** Its content type; empty if there was none. */
  readonly type: string
}

/** A fault that applied to a request. */
export interface AppliedFault {
  readonly id: string
  readonly effect: FaultEffect
}

/** A request and its response, before masking and interpretation. */
export interface JournalEntry {
  /** The `x-request-id` of the response. */
  readonly id: string
  /** When it arrived by berth's clock, in milliseconds since 1970. */
  readonly at: number
  /** When it arrived by `performance.now()`. */
  readonly began: number
  /** Milliseconds until the response; until its beginning for a stream. */
  readonly ms: number
  readonly method: string
  /** Which of berth's own clients sent it; null for any other. */
  readonly client: OwnClient | null
  /** The whole URL. */
  readonly url: string
  readonly status: number
  /** Undefined without a valid key. */
  readonly caller: Pick<Caller, 'accountId' | 'credentialId'> | undefined
  /** Null if no body was read: none was sent, or the request was refused first. */
  readonly request: KeptBody | null
  /** Null if the response is not JSON: a stream, a file, or nothing. */
  readonly response: KeptBody | null
  /** Those of a recent message are the message's own. */
  readonly requestHeaders: HeaderSource
  readonly responseHeaders: HeaderSource
  /** In the order in which they applied. */
  readonly faults: readonly AppliedFault[]
  /** The value of a recent response that is not serialized yet. */
  readonly unserialized: object | null
  readonly responseType: string
  /** Whether the client disconnected before the response. */
  readonly aborted: boolean
}

/** Returns a body to keep. It copies the beginning of a long one, so the whole can be freed. */
export function keptBody(content: Uint8Array | string, type: string): KeptBody {
  if (content.length <= MAX_KEPT_BODY) return { content, isCut: false, type }
  if (typeof content !== 'string') return { content: content.slice(0, MAX_KEPT_BODY), isCut: true, type }
  const bytes = new Uint8Array(MAX_KEPT_BODY)
  const { written } = new TextEncoder().encodeInto(content, bytes)
  return { content: bytes.subarray(0, written), isCut: true, type }
}

/** Returns a kept body as text. Invalid UTF-8, such as a character that was cut, becomes `�`. */
export const bodyText = (content: Uint8Array | string): string =>
  typeof content === 'string' ? content : new TextDecoder().decode(content)

/** Parses JSON. Returns undefined for a text that is invalid or nested deeper than a body may be. */
export function jsonOf(text: string): unknown {
  try {
    return parseJsonText(text, 'It')
  } catch {
    return undefined
  }
}

/** Returns the path and the query of an entry, not decoded. The query begins with its `?` or is empty. */
export function addressOf({ url }: Pick<JournalEntry, 'url'>): { path: string; query: string } {
  // The URL class throws for an invalid Host header. Bun may then pass only the path.
  const [, path = '', query = ''] = /^(?:[a-z]+:\/\/[^/?]*)?([^?]*)(.*)$/s.exec(url) ?? []
  return { path, query }
}

/** Returns an entry with its response serialized, and with headers of its own. */
export const serialized = (entry: JournalEntry): JournalEntry =>
  entry.unserialized === null && isFields(entry.requestHeaders) && isFields(entry.responseHeaders)
    ? entry
    : {
        ...entry,
        requestHeaders: headerFields(entry.requestHeaders),
        responseHeaders: headerFields(entry.responseHeaders),
        unserialized: null,
        response:
          entry.unserialized === null
            ? entry.response
            : keptBody(JSON.stringify(entry.unserialized), JSON_TYPE),
      }

/** Estimates the memory of an entry in bytes. What is not serialized counts as nothing. */
export const bodySize = ({ url, request, response, requestHeaders, responseHeaders }: JournalEntry): number =>
  ENTRY_BYTES +
  url.length +
  lengthOf(request) +
  lengthOf(response) +
  headersSize(requestHeaders) +
  headersSize(responseHeaders)

/** Bytes of an entry without its texts. */
const ENTRY_BYTES = 256

function lengthOf(body: KeptBody | null): number {
  if (body === null) return 0
  // A text with a single character beyond Latin-1 takes two bytes for every character.
  return typeof body.content === 'string' ? body.content.length * 2 : body.content.byteLength
}

/** A header with its value. */
export type HeaderField = readonly [name: string, value: string]

/** Headers as a request or a response has them: Elysia's are an object, with an array for a repeated one. */
type HeaderSource = Headers | Readonly<Record<string, unknown>> | readonly HeaderField[]

/** Most headers of a message that are kept, and most characters of a value. @bound client */
const MAX_FIELDS = 64
const MAX_VALUE = 2_048

/** The end of a value that was cut. */
export const CUT = '…'

/** Returns headers to keep: the first ones, each with the beginning of a long value. */
export function headerFields(source: HeaderSource): readonly HeaderField[] {
  if (isFields(source)) return source
  const fields: HeaderField[] = []
  const entries = source instanceof Headers ? source.entries() : Object.entries(source)
  for (const [name, value] of entries) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (fields.length === MAX_FIELDS) return fields
      const text = String(one)
      fields.push([name.toLowerCase(), text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}${CUT}` : text])
    }
  }
  return fields
}

/** Reports whether headers were kept already, and do not depend on their message any more. */
const isFields = (source: HeaderSource): source is readonly HeaderField[] => Array.isArray(source)

/** Estimates the memory of headers in bytes. Those that are still their message's count as nothing. */
const headersSize = (source: HeaderSource): number =>
  isFields(source) ? source.reduce((size, [name, value]) => size + name.length + value.length + 32, 0) : 0
