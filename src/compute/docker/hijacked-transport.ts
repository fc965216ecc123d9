import type { Duplex } from 'node:stream'
import { ProgramTransport } from '../engine/program-transport.ts'

/** Bytes of the header of each piece that the engine sends: stream, three zeros, length. */
const HEADER_BYTES = 8
const STDOUT = 1

/**
 * A connection to the engine that became the standard input and output of a process in a container. What the engine
 * sends is in pieces, each behind a header; what it takes is the bytes alone (docs.docker.com/reference/api/engine,
 * "Attach to a container").
 */
export class HijackedTransport extends ProgramTransport {
  readonly #socket: Duplex
  /** The beginning of a header. */
  #header: Buffer = Buffer.alloc(0)
  /** Bytes of a piece that are still to come, and its stream. */
  #left = 0
  #stream = 0

  /** @param head what came behind the response that turned the connection into a stream */
  constructor(socket: Duplex, head: Buffer) {
    super()
    this.#socket = socket
    this.#receive(head)
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('drain', () => this.drained())
    socket.on('close', () => this.end())
    // Its end follows.
    socket.on('error', () => {})
  }

  write(bytes: Uint8Array): number {
    if (this.#socket.writableNeedDrain) return 0
    this.#socket.write(bytes)
    return bytes.length
  }

  terminate(): void {
    this.#socket.destroy()
    this.end()
  }

  /** The end of the process as it has explained it itself. */
  protected get reason(): string | undefined {
    const { errors } = this
    return errors === '' ? undefined : `sandboxd ended: ${errors}`
  }

  /** Takes the pieces apart. */
  #receive(chunk: Buffer): void {
    let rest = this.#header.length === 0 ? chunk : Buffer.concat([this.#header, chunk])
    while (rest.length > 0) {
      if (this.#left > 0) {
        const piece = rest.subarray(0, this.#left)
        if (this.#stream === STDOUT) this.takeOutput(piece)
        else this.takeErrors(piece)
        this.#left -= piece.length
        rest = rest.subarray(piece.length)
      } else if (rest.length < HEADER_BYTES) {
        break
      } else {
        this.#stream = rest.readUInt8(0)
        this.#left = rest.readUInt32BE(4)
        rest = rest.subarray(HEADER_BYTES)
      }
    }
    this.#header = rest
  }
}
