/** Decodes bytes as UTF-8, a byte order mark included; returns null if they are none. */
export function utf8Text(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

/**
 * Reports whether a text is base64 with its padding and without line ends (RFC 4648, section 4), and with no bits at the end
 * that stand for nothing (3.5).
 */
export const isBase64 = (text: string): boolean =>
  text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text) && LAST_GROUP.test(text.slice(-4))

const LAST_GROUP = /^(?:|[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)$/

/** Decodes percent-encoding (RFC 3986, 2.1); returns null if it is malformed. */
export function percentDecoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** Returns the number of bytes at the end that begin an incomplete UTF-8 character (RFC 3629). */
export function unfinished(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if ((byte & 0xc0) === 0x80) continue
    const length = byte > 0xf4 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1
    return length > back ? back : 0
  }
  return 0
}
