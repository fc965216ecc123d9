/**
 * The media type of a command's output as frames: exact bytes of both streams, and the end, at little cost. A frame is a
 * header of 5 bytes and a payload: u8 kind, u32 length of the payload, big-endian.
 */
export const FRAMES_TYPE = 'application/vnd.berth.exec'

/** The kinds of frames. Payloads are bytes; of `exit` and `error`, JSON as in the events of these names. */
export const FRAME_KINDS = { stdout: 1, stderr: 2, exit: 3, error: 4 } as const

const HEADER_BYTES = 5

/** Largest payload that a reader takes. @bound client */
const MAX_PAYLOAD = 16 * 1024 * 1024

/** A frame. */
export interface Frame {
  readonly kind: number
  readonly payload: Uint8Array
}

/** Returns a frame as bytes. */
export function encodeFrame(kind: number, payload: Uint8Array): Uint8Array {
  const frame = new Uint8Array(HEADER_BYTES + payload.length)
  const view = new DataView(frame.buffer)
  view.setUint8(0, kind)
  view.setUint32(1, payload.length)
  frame.set(payload, HEADER_BYTES)
  return frame
}

/**
 * Cuts a stream of bytes into frames. A frame that the stream's end cuts is dropped.
 *
 * @throws Error at a frame that is too large
 */
export async function* readFrames(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Frame> {
  let rest: Uint8Array = new Uint8Array(0)
  /** Pieces of a frame that is not complete, and the bytes that are missing. */
  let pieces: Uint8Array[] = []
  let missing = 0
  for await (const chunk of bytes) {
    if (chunk.length < missing) {
      pieces.push(chunk)
      missing -= chunk.length
      continue
    }
    rest = pieces.length === 0 ? chunk : Buffer.concat([...pieces, chunk])
    pieces = []
    missing = 0
    for (;;) {
      const needed = rest.length < HEADER_BYTES ? HEADER_BYTES : HEADER_BYTES + payloadLength(rest)
      if (rest.length < needed) {
        missing = needed - rest.length
        break
      }
      yield { kind: rest[0] ?? 0, payload: rest.subarray(HEADER_BYTES, needed) }
      rest = rest.subarray(needed)
    }
    if (rest.length > 0) pieces.push(rest)
  }
}

function payloadLength(frame: Uint8Array): number {
  const length = new DataView(frame.buffer, frame.byteOffset).getUint32(1)
  if (length > MAX_PAYLOAD) throw new Error(`A frame announces ${length} bytes.`)
  return length
}
