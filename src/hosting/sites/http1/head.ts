import { CR, LF } from './fields.ts'

/** Largest size of a request's or a response's head, in bytes. */
export const HEAD_LIMIT = 32 * 1024

/** The refusal of a message. Its sentence is for the sender. */
export interface Refusal {
  readonly status: 400 | 403 | 408 | 431 | 501 | 502
  readonly message: string
}

const END = Buffer.from('\r\n\r\n')

/** Returns the end of a head, after its empty line, or -1 if the head is incomplete. */
export function findHeadEnd(bytes: Buffer, from: number): number {
  const at = bytes.indexOf(END, from)
  return at === -1 ? -1 : at + END.length
}

/** Reports whether an LF has no CR before it. The parser would never find the end of such a head. */
export function hasBareLf(bytes: Uint8Array): boolean {
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at - 1] !== CR) return true
  }
  return false
}

/**
 * Parses a Content-Length (RFC 9112, section 6.3). Returns -1 for anything but digits: signs and lists, even of equal
 * values, are refused.
 */
export function parseLength(value: string): number {
  return /^\d{1,15}$/.test(value) ? Number(value) : -1
}

/** The options in the Connection fields of a head (RFC 9110, section 7.6.1). */
export class ConnectionOptions {
  close = false
  keepAlive = false
  upgrade = false
  /** Names, in lower case, of further fields that apply only to this connection. */
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
