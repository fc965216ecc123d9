import { read, write, writeSync } from 'node:fs'

/** Most bytes to move by one turn through the thread pool. */
export const COPY_CHUNK = 16 * 1024 * 1024

/** Most bytes to write at once: the turn through the thread pool would take many times as long as the system call. */
const DIRECT_BYTES = 16 * 1024

// Not by `promisify`: loading node:util costs a start one millisecond.

/**
 * Reads from a descriptor into `bytes`; resolves to the number of bytes read, 0 at the end of the file.
 *
 * @param at offset in `bytes` of the first byte
 * @param position offset in the file of the first byte
 * @throws the system's error
 */
export const readInto = (
  descriptor: number,
  bytes: Uint8Array,
  at: number,
  length: number,
  position: number,
): Promise<number> =>
  new Promise((resolve, reject) => {
    read(descriptor, bytes, at, length, position, (error, count) => (error ? reject(error) : resolve(count)))
  })

/**
 * Writes a part of `bytes` to a descriptor; resolves to the number of bytes written.
 *
 * @param at offset in `bytes` of the first byte
 * @param position offset in the file of the first byte; null for the descriptor's current position
 * @throws the system's error
 */
export const writeFrom = (
  descriptor: number,
  bytes: Uint8Array,
  at: number,
  length: number,
  position: number | null,
): Promise<number> =>
  new Promise((resolve, reject) => {
    write(descriptor, bytes, at, length, position, (error, count) => (error ? reject(error) : resolve(count)))
  })

/** Writes all of `bytes` to a descriptor, from `position` on in the file. Throws the system's error. */
export async function writeAll(descriptor: number, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const length = Math.min(COPY_CHUNK, bytes.length - at)
    at +=
      length <= DIRECT_BYTES
        ? writeSync(descriptor, bytes, at, length, position + at)
        : await writeFrom(descriptor, bytes, at, length, position + at)
  }
}
