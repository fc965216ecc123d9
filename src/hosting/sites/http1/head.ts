import { CR, LF } from './fields.ts'

/** Bytes that a head may have, of a request or an answer. */
export const HEAD_LIMIT = 32 * 1024

/** A message that is refused; the sentence is for whoever sent it. */
export interface Refusal {
  readonly status: 400 | 403 | 408 | 431 | 501 | 502
  readonly message: string
}

const END = Buffer.from('\r\n\r\n')

/** Where a head ends, behind its empty line, or -1 where it is not whole yet. */
export function findHeadEnd(bytes: Buffer, from: number): number {
  const at = bytes.indexOf(END, from)
  return at === -1 ? -1 : at + END.length
}

/** Whether an LF stands without its CR: such a head would never end by our rules. */
export function hasBareLf(bytes: Uint8Array): boolean {
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at - 1] !== CR) return true
  }
  return false
}

/**
 * What a Content-Length says (RFC 9112, 6.3), or -1 where it is no plain number: neither a sign nor a
 * list, not even of equal values.
 */
export function parseLength(value: string): number {
  return /^\d{1,15}$/.test(value) ? Number(value) : -1
}

/** What the Connection fields of a head say (RFC 9110, 7.6.1). */
export class ConnectionOptions {
  close = false
  keepAlive = false
  upgrade = false
  /** Further fields, in lower case, that mean this connection alone. */
  named: string[] = []

  reset(): void {
    this.close = false
    this.keepAlive = false
    this.upgrade = false
    if (this.named.length > 0) this.named = []
  }

  add(value: string): void {
    for (const part of value.toLowerCase().split(',')) {
      const option = part.trim()
      if (option === 'keep-alive') this.keepAlive = true
      else if (option === 'close') this.close = true
      else if (option === 'upgrade') this.upgrade = true
      else if (option !== '') this.named.push(option)
    }
  }
}
