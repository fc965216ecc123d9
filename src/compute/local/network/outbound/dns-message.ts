import ipaddr from 'ipaddr.js'

/** The types of records that are answered here (RFC 1035, section 3.2.2; RFC 3596; RFC 9460). */
export const RECORD = { A: 1, AAAA: 28, HTTPS: 65, ANY: 255 } as const

/** Codes of responses (RFC 1035, section 4.1.1). */
export const RCODE = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 } as const

/** The code of a response. */
type ResponseCode = (typeof RCODE)[keyof typeof RCODE]

/** A question about a name. */
export interface Question {
  /** In lower case, without a trailing dot. What no host name has is escaped: `\\DDD` (RFC 4343, section 2.1). */
  readonly name: string
  /** The type of the records that are asked for. */
  readonly type: number
  /** The query, as it was received. */
  readonly query: Uint8Array
  /** Where the question's section ends in the query. */
  readonly end: number
}

const HEADER_BYTES = 12
const CLASS_IN = 1

/** Seconds that a program may keep an answer. */
const TTL = 30

/** Bytes of a name with its lengths (RFC 1035, section 2.3.4). */
const NAME_BYTES = 255

/** Bytes of a response over UDP that every program takes (RFC 1035, section 2.3.4). */
const UDP_BYTES = 512

/** Reads a query (RFC 1035, section 4.1). Returns null for what is no query of one name. */
export function readQuestion(query: Uint8Array): Question | null {
  const view = new DataView(query.buffer, query.byteOffset, query.byteLength)
  // A standard query with one question, and no response.
  if (query.length < HEADER_BYTES || (view.getUint16(2) & 0xf800) !== 0 || view.getUint16(4) !== 1)
    return null
  const labels: string[] = []
  let at = HEADER_BYTES
  for (;;) {
    const length = query[at]
    if (length === undefined || length > 63) return null
    at += 1
    if (length === 0) break
    const label = Buffer.from(query.subarray(at, at + length)).toString('latin1')
    if (label.length < length || at + length - HEADER_BYTES >= NAME_BYTES) return null
    labels.push(escaped(label))
    at += length
  }
  if (query.length < at + 4 || view.getUint16(at + 2) !== CLASS_IN) return null
  return { name: labels.join('.').toLowerCase(), type: view.getUint16(at), query, end: at + 4 }
}

/** Escapes what would end a label, or move a cursor where the name is shown. */
const escaped = (label: string): string =>
  label.replace(/[^\x21-\x7e]|[.\\"();@$]/g, (byte) => `\\${String(byte.charCodeAt(0)).padStart(3, '0')}`)

/**
 * Writes the response to a question.
 *
 * @param addresses of the type that is asked for; those that do not fit are left out
 */
export function writeResponse(
  { query, end, type }: Question,
  code: ResponseCode,
  addresses: readonly string[] = [],
): Uint8Array {
  const records: number[][] = []
  let size = end
  for (const address of addresses) {
    const data = ipaddr.parse(address).toByteArray()
    // A pointer to the name in the question (RFC 1035, section 4.1.4).
    const record = [0xc0, HEADER_BYTES, 0, type, 0, CLASS_IN, 0, 0, 0, TTL, 0, data.length, ...data]
    size += record.length
    if (size > UDP_BYTES) break
    records.push(record)
  }
  const head = Buffer.from(query.subarray(0, end))
  // A response, with recursion desired as in the query, and available.
  head.writeUInt16BE(0x8080 | (head.readUInt16BE(2) & 0x0100) | code, 2)
  head.writeUInt16BE(records.length, 6)
  head.writeUInt32BE(0, 8)
  return Buffer.concat([head, Buffer.from(records.flat())])
}
