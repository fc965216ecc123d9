import type { FrameChannel } from './channel.ts'
import { CHUNK, decodeJson, HEADER_BYTES, ProtocolError } from './protocol.ts'
import type { TransportHandlers } from './transport.ts'

/**
 * A stream of bytes that outlives the carriers which bring it to the peer. Berth's end is `engine/resumable.ts`,
 * sandboxd's is `listen.ts`; `carrier.ts` is the process between them. A carrier transports frames of this kind, whose
 * header is that of `protocol.ts`; the bytes of the stream are in their payloads.
 */
export const CARRIED = {
  /** To sandboxd, the first frame: a signed `JoinRequest`. */
  join: 1,
  /** From sandboxd, the first frame: a signed `Welcome`, or a sentence that says why the carrier is refused. */
  welcome: 2,
  refusal: 3,
  /** Both ways: the next bytes of the stream. */
  data: 4,
  /** Both ways: how many bytes of the stream have been received. A `ping` says so too, and asks for a `confirm`. */
  confirm: 5,
  ping: 6,
  /** From sandboxd: the stream is complete, since sandboxd ends. Berth closes the carrier. */
  end: 7,
} as const

/** Times that both ends of a stream keep, in milliseconds. */
export interface StreamTimes {
  /** Between two pings. */
  pingMs: number
  /** Without a frame, after which a carrier counts as dead; more than twice `pingMs`. */
  silenceMs: number
  /** Without a carrier, after which both ends give up: berth the server, and sandboxd itself and all that it runs. */
  leaseMs: number
}

/** How berth joins a stream, or begins it. */
export interface JoinRequest extends StreamTimes {
  /** Identifies the stream. One that begins has no use for the bytes of an earlier one. */
  stream: string
  /** Rises with each carrier, so a recorded request is worth nothing. */
  attempt: number
  /** Bytes of the stream that berth has received. */
  received: number
  /** The key in base64, until sandboxd has proved that it has it. Berth starts no command before that. */
  key?: string
}

/** sandboxd's agreement to a `JoinRequest`, which proves that it has the key. */
export interface Welcome {
  /** That of the request. */
  attempt: number
  /** Bytes of the stream that sandboxd has received. */
  received: number
}

/** Bytes of a key: 256 random bits. */
export const KEY_BYTES = 32

/** Bytes of a signature. */
const SIGNATURE_BYTES = 32

/** Returns a frame's payload: a signature (HMAC-SHA-256), and the JSON that it is about. */
export function sign(key: Uint8Array, kind: 'join' | 'welcome', value: JoinRequest | Welcome): Uint8Array {
  const json = new TextEncoder().encode(JSON.stringify(value))
  return Buffer.concat([signatureOf(key, kind, json), json])
}

/** Reads a signed payload. Returns null if it is not signed with the key; compares in constant time. */
export function verify(key: Uint8Array, kind: 'join' | 'welcome', payload: Uint8Array): unknown {
  const signature = payload.subarray(0, SIGNATURE_BYTES)
  const json = payload.subarray(SIGNATURE_BYTES)
  if (signature.length !== SIGNATURE_BYTES) return null
  return crypto.timingSafeEqual(signature, signatureOf(key, kind, json)) ? decodeJson(json) : null
}

/** Reads a signed payload without a look at the signature, for the key in the very first one. */
export const unverified = (payload: Uint8Array): unknown => decodeJson(payload.subarray(SIGNATURE_BYTES))

const signatureOf = (key: Uint8Array, kind: string, json: Uint8Array): Uint8Array =>
  new Bun.CryptoHasher('sha256', key).update(kind).update(json).digest()

/** Bytes that are kept until the peer confirms them, at most: a peer that confirms none gets no more. @bound program */
export const MAX_KEPT = 8 * 1024 * 1024

/** Largest payload of a carrier's frame: a whole frame of the largest piece of output or input. @bound program */
export const MAX_CARRIED = CHUNK + HEADER_BYTES

/** Smaller pieces are copied to blocks of this size, so that single bytes take no more memory than long pieces. */
const BLOCK_BYTES = 4 * 1024

/** Bytes that a carrier may hold and not have sent; the others wait where they need no second copy. */
const CARRIER_BYTES = 4 * CHUNK

/** Received bytes after which the peer is told, so that it need not keep them. */
const CONFIRM_BYTES = 4 * CHUNK

/** Bytes that are kept, as one piece of at most `MAX_CARRIED`. */
interface KeptPiece {
  /** The position of its first byte in the stream. */
  readonly at: number
  /** With room behind `length` if small pieces were copied to it. */
  readonly bytes: Uint8Array
  length: number
}

/**
 * One end of a stream: counts its bytes in both directions, keeps what the peer has not confirmed, and sends that again
 * over the next carrier. What it is given must not change, so it keeps that itself: a copy would take as long as the rest.
 */
export class ResumableStream {
  readonly #handlers: Pick<TransportHandlers, 'data' | 'drain'>
  readonly #kept: KeptPiece[] = []
  /** Index of the piece with the next byte to send. */
  #next = 0
  /** Positions in what this end sends, in bytes from the stream's beginning. */
  #confirmed = 0
  #sent = 0
  #written = 0
  #received = 0
  /** The last count that the peer was told. */
  #reported = 0
  #isFull = false
  #carrier: FrameChannel | null = null
  #pings: Timer | null = null
  #heardAt = 0

  constructor(handlers: Pick<TransportHandlers, 'data' | 'drain'>) {
    this.#handlers = handlers
  }

  /** Bytes received from the peer. */
  get received(): number {
    return this.#received
  }

  /** Whether a carrier has been given everything. */
  get isSent(): boolean {
    return this.#sent === this.#written
  }

  /** Reports whether a peer that has received this many bytes can go on from there. */
  canResume(received: unknown): received is number {
    return (
      Number.isSafeInteger(received) &&
      Number(received) >= this.#confirmed &&
      Number(received) <= this.#written
    )
  }

  /** Takes the first of these bytes, as many as may be kept, and returns how many. `drain` is called when it takes more. */
  write(bytes: Uint8Array): number {
    const taken = Math.min(bytes.length, MAX_KEPT - (this.#written - this.#confirmed))
    for (let at = 0; at < taken; at += MAX_CARRIED)
      this.#keep(bytes.subarray(at, Math.min(taken, at + MAX_CARRIED)))
    this.#isFull = taken < bytes.length
    this.pump()
    return taken
  }

  #keep(bytes: Uint8Array): void {
    const last = this.#kept.at(-1)
    if (bytes.length >= BLOCK_BYTES) this.#kept.push({ at: this.#written, bytes, length: bytes.length })
    else if (last !== undefined && last.length + bytes.length <= last.bytes.length) {
      last.bytes.set(bytes, last.length)
      last.length += bytes.length
    } else {
      const block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
      block.set(bytes)
      this.#kept.push({ at: this.#written, bytes: block, length: bytes.length })
    }
    this.#written += bytes.length
  }

  /** Goes on over a carrier whose peer has received `received` bytes. `dead` is called if nothing comes of it for too long. */
  attach(
    carrier: FrameChannel,
    received: number,
    { pingMs, silenceMs }: StreamTimes,
    dead: () => void,
  ): void {
    this.detach()
    this.#sent = received
    this.#next = 0
    this.#confirm(received)
    this.#carrier = carrier
    this.#reported = this.#received
    this.#heardAt = performance.now()
    const look = (): void => {
      const leftMs = silenceMs - (performance.now() - this.#heardAt)
      if (leftMs <= 0) {
        dead()
        return
      }
      this.#report('ping')
      wait(Math.min(pingMs, leftMs))
    }
    const wait = (ms: number): void => {
      this.#pings = setTimeout(look, ms)
      this.#pings.unref()
    }
    wait(pingMs)
    this.pump()
  }

  /** Forgets its carrier, whose frames must not be passed to `receive` anymore. */
  detach(): void {
    this.#carrier = null
    clearTimeout(this.#pings ?? undefined)
  }

  /** Acts on a frame of its carrier. Throws `ProtocolError`. */
  receive(kind: number, payload: Uint8Array): void {
    this.#heardAt = performance.now()
    if (kind === CARRIED.data) {
      this.#received += payload.length
      this.#handlers.data(payload)
      if (this.#received - this.#reported >= CONFIRM_BYTES) this.#report('confirm')
    } else if (kind === CARRIED.confirm || kind === CARRIED.ping) {
      this.#confirm(decodeCount(payload))
      if (kind === CARRIED.ping) this.#report('confirm')
    } else throw new ProtocolError(`a carrier has no frame of kind ${kind}`)
  }

  /** Sends what its carrier has room for. To be called when that has sent what it held. */
  pump(): void {
    while (this.#carrier !== null && this.#sent < this.#written && this.#carrier.pending < CARRIER_BYTES) {
      const kept = this.#kept[this.#next]
      if (kept === undefined) break
      const piece = kept.bytes.subarray(this.#sent - kept.at, kept.length)
      // One to which small pieces were added since has more to send.
      if (piece.length === 0) this.#next += 1
      else this.#carrier.send(CARRIED.data, 0, piece)
      this.#sent += piece.length
    }
    // What comes here has waited for the end of a turn already.
    this.#carrier?.flush()
  }

  #report(kind: 'confirm' | 'ping'): void {
    this.#reported = this.#received
    this.#carrier?.send(CARRIED[kind], 0, encodeCount(this.#received))
  }

  #confirm(received: number): void {
    if (!this.canResume(received) || received > this.#sent)
      throw new ProtocolError(`${received} bytes are confirmed; ${this.#sent} were sent`)
    const first = this.#kept.findIndex(({ at, length }) => at + length > received)
    const gone = first === -1 ? this.#kept.length : first
    this.#kept.splice(0, gone)
    this.#next = Math.max(0, this.#next - gone)
    this.#confirmed = received
    if (!this.#isFull) return
    this.#isFull = false
    this.#handlers.drain()
  }
}

/** Returns a count of bytes as a payload: a stream has more than a u32 holds. */
function encodeCount(count: number): Uint8Array {
  const payload = new Uint8Array(8)
  new DataView(payload.buffer).setFloat64(0, count, true)
  return payload
}

function decodeCount(payload: Uint8Array): number {
  if (payload.length !== 8) throw new ProtocolError('A count in a frame is not 8 bytes long.')
  return new DataView(payload.buffer, payload.byteOffset, 8).getFloat64(0, true)
}
