import { read, write } from 'node:fs'

// As `promisify` of node:util would make them: that module alone costs a start a millisecond.

/**
 * Reads from a descriptor into `bytes`; resolves to how many bytes came, 0 at the end of the file.
 *
 * @param at where in `bytes` the first goes
 * @param position where in the file the first lies
 * @throws what the system says
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
 * Writes a part of `bytes` to a descriptor; resolves to how many bytes went.
 *
 * @param at where in `bytes` the first lies
 * @param position where in the file the first goes; null for where the descriptor stands
 * @throws what the system says
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
