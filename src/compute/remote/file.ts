import { ComputeError } from '../sandbox.ts'
import type { ClientCall } from '../sandboxd/client-calls.ts'
import { FILE_PIECE, READ_REQUEST_BYTES } from '../sandboxd/protocol.ts'
import type { WorkspaceFile } from '../workspace.ts'
import { wrongResponse } from './read-response.ts'

/** A file that sandboxd holds open for as long as an `open` call is under way. See `WorkspaceFile`. */
export class RemoteFile implements WorkspaceFile {
  readonly size: number
  readonly mode: number
  readonly modifiedAt: number
  readonly changedAt: number
  readonly identity: string
  readonly #call: ClientCall
  /** Turns an error of the call into one of a workspace. */
  readonly #toError: (error: unknown) => unknown
  /** The reads under way, which are answered in their order. */
  #reading: Promise<unknown> = Promise.resolve()
  /** Bytes of the stream that no read has taken yet. */
  #received: Uint8Array = new Uint8Array()

  constructor(
    call: ClientCall,
    facts: Omit<WorkspaceFile, 'read' | typeof Symbol.dispose>,
    toError: (error: unknown) => unknown,
  ) {
    this.#call = call
    this.#toError = toError
    this.size = facts.size
    this.mode = facts.mode
    this.modifiedAt = facts.modifiedAt
    this.changedAt = facts.changedAt
    this.identity = facts.identity
  }

  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const request = Buffer.alloc(READ_REQUEST_BYTES)
    request.writeDoubleLE(offset, 0)
    request.writeDoubleLE(length, 8)
    const sent = this.#call.stream.send(request)
    const before = this.#reading
    const bytes = this.#receive(length, Promise.all([before, sent]))
    this.#reading = bytes.catch(() => {})
    return bytes
  }

  [Symbol.dispose](): void {
    // sandboxd closes the file when it has answered the requests before.
    this.#call.stream.end()
  }

  async #receive(length: number, turn: Promise<unknown>): Promise<Uint8Array<ArrayBuffer>> {
    try {
      await turn
      const bytes = new Uint8Array(length)
      let filled = 0
      while (filled < length) {
        const piece = Buffer.from(await this.#take(4)).readUInt32LE()
        if (piece > Math.min(FILE_PIECE, length - filled)) throw wrongResponse('open')
        if (piece === 0) return bytes.subarray(0, filled)
        bytes.set(await this.#take(piece), filled)
        filled += piece
      }
      return bytes
    } catch (error) {
      throw this.#toError(error)
    }
  }

  /** Returns the next bytes of the stream, exactly as many. */
  async #take(length: number): Promise<Uint8Array> {
    while (this.#received.length < length) {
      const chunk = await this.#call.stream.read()
      if (chunk === null) throw new ComputeError('sandboxd has closed a file that is read.')
      this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    }
    const taken = this.#received.subarray(0, length)
    this.#received = this.#received.subarray(length)
    return taken
  }
}
