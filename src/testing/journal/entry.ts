import type { Caller } from '../../http/caller.ts'
import { parseJsonText } from '../../http/json.ts'

/** Bytes of a body that are kept. */
export const BODY_KEPT = 64 * 1024

/** As answers in JSON say it. */
export const JSON_TYPE = 'application/json;charset=utf-8'

/** A body, or its beginning: bytes as they came, or text. */
export interface KeptBody {
  readonly content: Uint8Array | string
  /** Whether there was more. */
  readonly cut: boolean
  /** Its content type; empty where none was said. */
  readonly type: string
}

/** One request as it is kept: nothing is masked or understood yet. */
export interface Entry {
  /** The `x-request-id` of the answer. */
  readonly id: string
  /** When it came, by berth's clock, milliseconds since 1970. */
  readonly at: number
  /** The same by `performance.now()`. */
  readonly began: number
  /** Milliseconds until there was an answer; of a stream, until it began. */
  readonly ms: number
  readonly method: string
  /** The whole URL. */
  readonly url: string
  readonly status: number
  /** Undefined without a valid key. */
  readonly caller: Pick<Caller, 'accountId' | 'credentialId'> | undefined
  /** Null where nothing of it was read: none was sent, or the request was refused before. */
  readonly request: KeptBody | null
  /** Null where it is no JSON: a stream, a file, or nothing. */
  readonly response: KeptBody | null
  /** The answer of a moment ago, which is its JSON soon. */
  readonly unwritten: object | null
  readonly responseType: string
  /** Whether the client had gone before there was an answer. */
  readonly aborted: boolean
}

/** A body to keep. Of a long one a copy of its beginning: the whole is not held in memory for that. */
export function keptBody(content: Uint8Array | string, type: string): KeptBody {
  if (content.length <= BODY_KEPT) return { content, cut: false, type }
  if (typeof content !== 'string') return { content: content.slice(0, BODY_KEPT), cut: true, type }
  const bytes = new Uint8Array(BODY_KEPT)
  const { written } = new TextEncoder().encodeInto(content, bytes)
  return { content: bytes.subarray(0, written), cut: true, type }
}

/** A kept body as text. What is no UTF-8, or is cut within a character, shows as `�`. */
export const textOf = (content: Uint8Array | string): string =>
  typeof content === 'string' ? content : new TextDecoder().decode(content)

/** The value of JSON; undefined for what is none, or is nested deeper than a body may be. */
export function jsonOf(text: string): unknown {
  try {
    return parseJsonText(text, 'It')
  } catch {
    return undefined
  }
}

/** The path of an entry and its query, each as it was sent; the query begins with its `?` or is empty. */
export function addressOf({ url }: Pick<Entry, 'url'>): { path: string; query: string } {
  // Not by the URL class, which throws where the Host header is no host; Bun gives the path alone then, or not.
  const [, path = '', query = ''] = /^(?:[a-z]+:\/\/[^/?]*)?([^?]*)(.*)$/s.exec(url) ?? []
  return { path, query }
}

/** An entry with its answer written. */
export const written = (entry: Entry): Entry =>
  entry.unwritten === null
    ? entry
    : { ...entry, unwritten: null, response: keptBody(JSON.stringify(entry.unwritten), JSON_TYPE) }

/** About how many bytes an entry takes in memory; an answer that is not written yet counts as nothing. */
export const sizeOf = ({ url, request, response }: Entry): number =>
  ENTRY_BYTES + url.length + lengthOf(request) + lengthOf(response)

/** What an entry takes without its texts. */
const ENTRY_BYTES = 256

function lengthOf(body: KeptBody | null): number {
  if (body === null) return 0
  // A text takes two bytes for each of its letters as soon as one of them is not Latin.
  return typeof body.content === 'string' ? body.content.length * 2 : body.content.byteLength
}
