import { orAborted } from '../../runtime/wait.ts'
import type { FrameTransport, TransportHandlers } from '../sandboxd/transport.ts'
import type { Endpoint, EngineTls } from './address.ts'

/** Bytes of a response's head, or of the text of a refusal, at most. @bound system */
const MAX_HEAD_BYTES = 64 * 1024

/** Bytes kept of what the peer writes to standard error. @bound program */
const MAX_ERRORS = 4096

/** Characters of them that are shown. @bound program */
const MAX_REASON = 500

/** Milliseconds for the connection and the response's head. */
const HEAD_MS = 60_000

/** Bytes of the header of each piece that the engine sends: stream, three zeros, length. */
const PIECE_HEADER_BYTES = 8
const STDOUT = 1

/** A response that refuses to turn the connection into a stream. */
interface Refusal {
  readonly status: number
  readonly text: string
}

/**
 * A connection to the engine that became the standard input and output of a process in a container. What the engine
 * sends is in pieces, each behind a header; what it takes is the bytes alone (docs.docker.com/reference/api/engine,
 * "Attach to a container").
 */
export class HijackedTransport implements FrameTransport {
  readonly #socket: Bun.Socket
  readonly #header = Buffer.alloc(PIECE_HEADER_BYTES)
  #handlers: TransportHandlers | null = null
  /** What has arrived before `open`. */
  #early: Uint8Array[] = []
  #isClosed = false
  #filled = 0
  #left = 0
  #stream = 0
  #errors = ''

  /**
   * Connects, sends a request, and reads the head of the response.
   *
   * @returns the stream, or the response if that is not one
   * @param gone aborts when nothing is to be waited for anymore
   * @throws the system's error, or one that says what is wrong
   */
  static async connect(
    endpoint: Endpoint,
    tls: EngineTls | null,
    request: string,
    gone: AbortSignal,
  ): Promise<HijackedTransport | Refusal> {
    const { promise, resolve, reject } = Promise.withResolvers<HijackedTransport | Refusal>()
    let head: Buffer | null = Buffer.alloc(0)
    let transport: HijackedTransport | null = null
    const timer = setTimeout(() => reject(new Error('it did not respond in time')), HEAD_MS)
    const fail = (error: Error): void => {
      if (transport === null) reject(error)
      else transport.#close()
    }
    const pending = Buffer.from(request)
    let sent = 0
    const send = (socket: Bun.Socket): void => {
      if (sent < pending.length) sent += Math.max(0, socket.write(pending, sent))
    }
    const handlers: Bun.SocketHandler<undefined> = {
      open: send,
      drain(socket) {
        if (transport === null) send(socket)
        else transport.#handlers?.drain()
      },
      data(socket, chunk) {
        if (head === null) {
          if (transport !== null) transport.#receive(chunk)
          return
        }
        head = Buffer.concat([head, chunk])
        const outcome = readHead(head)
        if (outcome === 'more') {
          if (head.length > MAX_HEAD_BYTES) fail(new Error('its response has no end'))
          return
        }
        if ('rest' in outcome) {
          head = null
          transport = new HijackedTransport(socket)
          if (outcome.rest.length > 0) transport.#receive(outcome.rest)
          resolve(transport)
        } else {
          resolve(outcome)
          socket.terminate()
        }
      },
      close: () => fail(Object.assign(new Error('it closed the connection'), { code: 'ConnectionClosed' })),
      error: (_, error) => fail(error),
      connectError: (_, error) => reject(error),
    }
    const connecting: Promise<Bun.Socket> =
      endpoint.kind === 'unix'
        ? Bun.connect({ unix: endpoint.path, socket: handlers })
        : Bun.connect({
            hostname: endpoint.host,
            port: endpoint.port,
            ...(tls && { tls }),
            socket: handlers,
          })
    try {
      await orAborted(connecting, gone)
      return await orAborted(promise, gone)
    } catch (error) {
      void connecting.then((socket) => socket.terminate()).catch(() => {})
      throw error
    } finally {
      clearTimeout(timer)
      promise.catch(() => {})
    }
  }

  private constructor(socket: Bun.Socket) {
    this.#socket = socket
  }

  async open(handlers: TransportHandlers): Promise<void> {
    let isOver = false
    const closed = (reason?: string): void => {
      if (!isOver) handlers.closed(reason)
      isOver = true
    }
    this.#handlers = { ...handlers, closed }
    for (const chunk of this.#early.splice(0)) this.#receive(chunk)
    if (this.#isClosed) this.#handlers.closed(this.#reason)
  }

  write(bytes: Uint8Array): number {
    return Math.max(0, this.#socket.write(bytes))
  }

  terminate(): void {
    this.#socket.terminate()
    this.#close()
  }

  /** What the process has written to standard error, its first 4 KiB. */
  get errors(): string {
    return this.#errors.trim()
  }

  /** The end of the process as it has explained it itself; undefined if it has not. */
  get #reason(): string | undefined {
    const { errors } = this
    return errors === '' ? undefined : `sandboxd ended: ${errors.slice(0, MAX_REASON)}`
  }

  #close(): void {
    this.#isClosed = true
    this.#handlers?.closed(this.#reason)
  }

  /** Takes the pieces apart and passes those of standard output on. */
  #receive(chunk: Uint8Array): void {
    const handlers = this.#handlers
    if (handlers === null) {
      this.#early.push(chunk)
      return
    }
    for (let at = 0; at < chunk.length; ) {
      if (this.#left === 0) {
        const taken = chunk.subarray(at, at + PIECE_HEADER_BYTES - this.#filled)
        this.#header.set(taken, this.#filled)
        this.#filled += taken.length
        at += taken.length
        if (this.#filled < PIECE_HEADER_BYTES) return
        this.#filled = 0
        this.#stream = this.#header[0] ?? 0
        this.#left = this.#header.readUInt32BE(4)
        continue
      }
      const piece = chunk.subarray(at, at + this.#left)
      at += piece.length
      this.#left -= piece.length
      if (this.#stream === STDOUT) handlers.data(piece)
      else if (this.#errors.length < MAX_ERRORS)
        this.#errors += Buffer.from(piece.subarray(0, MAX_ERRORS - this.#errors.length)).toString()
    }
  }
}

/** Reads the head of a response, and the text of one that is an error. */
function readHead(bytes: Buffer): 'more' | { rest: Buffer } | Refusal {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return 'more'
  const head = bytes.subarray(0, end).toString('latin1')
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1] ?? 0)
  const rest = bytes.subarray(end + 4)
  // Podman and older engines say 200 where Docker says 101.
  if (status === 101 || status === 200) return { rest }
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
  return rest.length < Math.min(length, MAX_HEAD_BYTES / 2) ? 'more' : { status, text: rest.toString() }
}
