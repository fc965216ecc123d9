import { MAX_MESSAGE_BYTES, type Socket, type SocketListener } from '../../../http/web-socket.ts'
import type { ByteStream } from '../http1/byte-stream.ts'
import type { BridgedSocket, SiteState } from '../site-state.ts'

/**
 * WebSockets of an app at a time. Each may have an incomplete message in memory, so that it is not any number.
 * @bound program
 */
export const MAX_SOCKETS = 100

/**
 * Bytes that may wait for an app that does not read, or more slowly than the client sends: of a WebSocket, and of all of an
 * app together. Bun cannot make the client wait.
 * @bound program
 */
const WAITING_LIMIT = 64 * 1024 * 1024
const ALL_WAITING_LIMIT = 128 * 1024 * 1024

/** Bytes that wait for a side that does read. */
const USUAL_WAITING = 1024 * 1024

/** Bytes of memory that each further frame of a message takes besides its content. */
const FRAGMENT_BYTES = 64

/** Close codes that are never sent in a frame (RFC 6455, section 7.4.1). */
const NO_CODE = 1005
const ABNORMAL = 1006
const UNSENT = new Set([1004, NO_CODE, ABNORMAL, 1015])

/** Joins a WebSocket of the main port, which Bun speaks, to the frames of the app's connection. */
export class Bridge implements SocketListener, BridgedSocket {
  readonly #state: SiteState
  readonly #client = Promise.withResolvers<Socket>()
  #socket: Socket | null = null
  #app: ByteStream | null = null
  /** Continues with the app's messages, because the client takes more. */
  #drained: (() => void) | null = null
  /** Whether the app is not to be sent anything any more. */
  #isClosing = false

  constructor(state: SiteState) {
    this.#state = state
    state.webSockets.add(this)
  }

  /** Ends the bridge, or gives it up before it has begun. */
  release(): void {
    this.#state.webSockets.delete(this)
  }

  /** Passes messages in both directions until one side closes. */
  async join(app: ByteStream): Promise<void> {
    this.#app = app
    const terminate = () => {
      app.end(true)
      this.#socket?.terminate()
    }
    this.#state.closing.addEventListener('abort', terminate)
    try {
      await this.#passFromApp(await this.#client.promise, app)
      await Promise.race([app.flushed(), Bun.sleep(this.#state.times.lingerMs)])
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error
      this.#refuse(error.code, error.message)
    } finally {
      this.#state.closing.removeEventListener('abort', terminate)
      this.#socket?.terminate()
    }
  }

  // `SocketListener`, for the client.

  opened(socket: Socket): void {
    this.#socket = socket
    this.#client.resolve(socket)
  }

  message(message: string | Buffer): void {
    if (this.#isClosing) return
    if (typeof message === 'string') this.#app?.write(clientFrame(OPCODE.text, Buffer.from(message)))
    else this.#app?.write(clientFrame(OPCODE.binary, message))
    if (this.#isTooMuchWaiting()) this.#refuse(1009, 'the app does not read')
  }

  drained(): void {
    this.#drained?.()
  }

  closed(code: number, reason: string): void {
    this.#socket = null
    this.#drained?.()
    const app = this.#app
    if (app === null || code === ABNORMAL) {
      app?.end()
      return
    }
    this.#sendClose(code, reason)
    // The app is expected to close its end.
    void Promise.race([app.closing, Bun.sleep(this.#state.times.lingerMs)]).then(() => app.end())
  }

  get waiting(): number {
    return this.#app?.waiting ?? 0
  }

  async #passFromApp(client: Socket, app: ByteStream): Promise<void> {
    let parts: Buffer[] = []
    let opcode = 0
    let size = 0
    for (;;) {
      const frame = await readFrame(app, size)
      if (frame === null) return
      if (frame.opcode === OPCODE.close) return this.#closeAs(frame.payload)
      if (frame.opcode === OPCODE.ping) {
        if (!this.#isClosing) await app.send(clientFrame(OPCODE.pong, frame.payload))
      } else if (frame.opcode <= OPCODE.binary) {
        if (frame.opcode !== OPCODE.continuation) opcode = frame.opcode
        else size += FRAGMENT_BYTES
        parts.push(frame.payload)
        size += frame.payload.length
        if (!frame.isLast) continue
        const message = Buffer.concat(parts)
        parts = []
        size = 0
        if (this.#socket === null) continue
        client.send(opcode === OPCODE.text ? message.toString() : message)
        // The app waits for a client that reads more slowly than the app sends.
        if (client.getBufferedAmount() > USUAL_WAITING) {
          await new Promise<void>((resolve) => {
            this.#drained = resolve
          })
        }
      }
    }
  }

  /** Closes the client's socket as the app has closed its own. */
  #closeAs(payload: Buffer): void {
    const code = payload.length < 2 ? NO_CODE : payload.readUInt16BE(0)
    if (code !== NO_CODE && (code < 1000 || code > 4999 || UNSENT.has(code))) {
      throw new BadFrame(1002, 'the app closes with a code that is not valid')
    }
    const socket = this.#socket
    this.#sendClose(code, '')
    this.#socket = null
    if (code === NO_CODE) socket?.close()
    else socket?.close(code, payload.toString('utf8', 2))
  }

  #sendClose(code: number, reason: string): void {
    if (this.#isClosing) return
    this.#isClosing = true
    const text = Buffer.from(reason)
    const payload = Buffer.alloc(code === NO_CODE ? 0 : 2 + text.length)
    if (code !== NO_CODE) {
      payload.writeUInt16BE(code, 0)
      payload.set(text, 2)
    }
    this.#app?.write(clientFrame(OPCODE.close, payload))
  }

  #isTooMuchWaiting(): boolean {
    const own = this.waiting
    if (own <= USUAL_WAITING) return false
    const all = this.#state.webSockets.values().reduce((sum, socket) => sum + socket.waiting, 0)
    return own > WAITING_LIMIT || all > ALL_WAITING_LIMIT
  }

  /** Closes the client's socket with a reason, and cuts the app's off, whatever waits there. */
  #refuse(code: number, reason: string): void {
    const socket = this.#socket
    this.#isClosing = true
    this.#socket = null
    socket?.close(code, reason)
    this.#app?.terminate()
  }
}

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
