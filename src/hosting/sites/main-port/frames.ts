import { MAX_MESSAGE_BYTES } from '../../../http/web-socket.ts'
import type { ByteStream } from '../http1/byte-stream.ts'

/** Opcodes of frames (RFC 6455, section 5.2). */
export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** A frame of a WebSocket. */
export interface Frame {
  readonly opcode: number
  /** Whether it is the last one of its message. */
  readonly isLast: boolean
  readonly payload: Buffer
}

/** Error: an app has sent something that a WebSocket must not carry. The message is its defect. */
export class BadFrame extends Error {
  override readonly name = 'BadFrame'

  /** @param code that the socket is closed with (RFC 6455, section 7.4.1) */
  constructor(
    readonly code: 1002 | 1009,
    message: string,
  ) {
    super(message)
  }
}

/** Bits of the first two bytes of a frame. */
const LAST = 0x80
const RESERVED_BITS = 0x70
const OPCODE_BITS = 0x0f
const MASKED = 0x80

/** Values of the second byte for a length that follows in two or in eight bytes. */
const TWO_BYTES = 126
const EIGHT_BYTES = 127

/**
 * Reads the next frame of a server; null if the connection ends before. A frame says its length before its content, so one
 * that makes a message too large takes no memory.
 *
 * @param size bytes of the message so far
 * @throws BadFrame
 */
export async function readFrame(stream: ByteStream, size: number): Promise<Frame | null> {
  const start = await readExactly(stream, 2)
  if (start === null) return null
  const first = start.readUInt8(0)
  const second = start.readUInt8(1)
  const opcode = first & OPCODE_BITS
  if ((first & RESERVED_BITS) !== 0 || (second & MASKED) !== 0) {
    throw new BadFrame(1002, 'the app sends frames that are not valid')
  }
  let length = second
  if (second >= TWO_BYTES) {
    const bytes = await readExactly(stream, second === TWO_BYTES ? 2 : 8)
    if (bytes === null) return null
    length = bytes.length === 2 ? bytes.readUInt16BE(0) : Number(bytes.readBigUInt64BE(0))
  }
  if (opcode < OPCODE.close && size + length > MAX_MESSAGE_BYTES) {
    throw new BadFrame(1009, `a message of the app is larger than ${MAX_MESSAGE_BYTES / 2 ** 20} MiB`)
  }
  if (opcode >= OPCODE.close && length >= TWO_BYTES)
    throw new BadFrame(1002, 'the app sends frames that are not valid')
  const payload = await readExactly(stream, length)
  return payload === null ? null : { opcode, isLast: (first & LAST) !== 0, payload }
}

/**
 * Returns a frame of a client with a whole message. Its mask is zero: masks protect intermediaries, and none is between berth
 * and the app.
 */
export function clientFrame(opcode: number, payload: Uint8Array): Buffer {
  const { length } = payload
  const extended = length < TWO_BYTES ? 0 : length < 65_536 ? 2 : 8
  const bytes = Buffer.alloc(2 + extended + 4 + length)
  bytes[0] = LAST | opcode
  bytes[1] = MASKED | (extended === 0 ? length : extended === 2 ? TWO_BYTES : EIGHT_BYTES)
  if (extended === 2) bytes.writeUInt16BE(length, 2)
  if (extended === 8) bytes.writeBigUInt64BE(BigInt(length), 2)
  bytes.set(payload, 2 + extended + 4)
  return bytes
}

/** Reads a number of bytes; null if the connection ends before. */
async function readExactly(stream: ByteStream, length: number): Promise<Buffer | null> {
  if (length === 0) return Buffer.alloc(0)
  const parts: Buffer[] = []
  let missing = length
  while (missing > 0) {
    const bytes = await stream.read()
    if (bytes === null) return null
    parts.push(bytes.subarray(0, missing))
    stream.unread(bytes.subarray(missing))
    missing -= Math.min(missing, bytes.length)
  }
  return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)
}
