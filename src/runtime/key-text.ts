/** Bytes of a key for AES-256. */
export const KEY_LENGTH = 32

const HEX = /^[0-9a-f]{64}$/i
/** 32 bytes are 43 characters; the padding may be missing (RFC 4648, 3.2). */
const BASE64 = /^[A-Za-z0-9+/]{43}=?$/

/** 32 bytes written as hex or base64, white space around them allowed; null for anything else. */
export function parseKeyText(text: string): Uint8Array | null {
  const trimmed = text.trim()
  if (HEX.test(trimmed)) return Buffer.from(trimmed, 'hex')
  return BASE64.test(trimmed) ? Buffer.from(trimmed, 'base64') : null
}
