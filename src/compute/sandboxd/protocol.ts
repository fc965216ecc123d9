import type { Confinement } from '../../system/system.ts'
import type { TerminalSize } from '../sandbox.ts'

/**
 * The protocol between berth and sandboxd, over any stream of bytes (`transport.ts`). On this machine that is a socket
 * pair that sandboxd inherits as file descriptor 3; it has no path, so nothing else in the sandbox can connect.
 *
 * Both sides use `protocol.ts` and `channel.ts`. Berth's side is `client.ts` with `client-execution.ts`; sandboxd's is
 * `sandboxd.ts` with `command.ts`. `terminals.ts` and `sendBlankSockets` use the separate socket for
 * descriptors.
 *
 * A frame is a header of 9 bytes, little-endian, and a payload:
 *
 * u32 length of the payload · u8 kind · u32 id of the execution or call, or 0
 *
 * Payloads are bytes (stdin, type, stdout, stderr, data), a u32 (credit, typed and more in bytes; cancel in
 * milliseconds of grace; started a pid), or JSON (all others).
 *
 * A call is a request to a service of sandboxd: JSON, answered by JSON, with a stream of bytes each way. Berth's side is
 * `client-calls.ts`; sandboxd's is `served-calls.ts`, loaded with the services at the first call. A call's last frame
 * from sandboxd is `error`, or `drop` when both streams have ended or berth has given it up.
 */
export const FRAME = {
  /** To sandboxd. */
  configure: 1,
  spawn: 2,
  stdin: 3,
  begin: 4,
  cancel: 5,
  credit: 6,
  ping: 7,
  shutdown: 8,
  type: 9,
  resize: 10,
  hangUp: 11,
  endInput: 12,
  /** To sandboxd: a request to one of its services. */
  call: 32,
  /** Both ways, about a call: bytes of a stream, and its end. */
  data: 33,
  end: 34,
  /** From sandboxd: the answer, or an error as the call's last frame. */
  result: 35,
  error: 36,
  /** Both ways: room for more bytes of the stream. */
  more: 37,
  /** To sandboxd: the call is given up. From sandboxd: nothing more comes about the call. */
  drop: 38,
  /** From sandboxd. */
  ready: 16,
  stdout: 17,
  stderr: 18,
  exit: 19,
  failure: 20,
  pong: 21,
  /** A command's terminal or pipe has taken this many bytes of input. */
  typed: 22,
  /** The command runs, with this pid. */
  started: 23,
} as const

/** Bytes of a frame's header. */
export const HEADER_BYTES = 9

/**
 * Largest payload that berth accepts from sandboxd, which a process in the sandbox may have taken over.
 * @bound program
 */
export const MAX_FROM_SANDBOXD = 256 * 1024

/**
 * Frames for sandboxd that wait until it reads, at most: berth itself sends some for what comes from sandboxd, such as
 * credit. Input for commands is in far fewer.
 * @bound program
 */
export const MOST_WAITING = 100_000

/** Largest payload that sandboxd takes from berth. @bound program */
export const MAX_TO_SANDBOXD = 64 * 1024 * 1024

/** Output bytes of one execution that may be under way, undelivered, at a time. */
export const WINDOW = 256 * 1024

/** Typed bytes of one execution that may be under way, not taken by its terminal, at a time. */
export const TYPE_WINDOW = 64 * 1024

/** Bytes for the pipe of one execution's standard input that may be under way at a time. */
export const INPUT_WINDOW = 256 * 1024

/** Largest piece of output or input in one frame. */
export const CHUNK = 64 * 1024

/** Bytes of one of a call's streams that may be under way, unread, at a time. */
export const CALL_WINDOW = 1024 * 1024

/** The file descriptor on which sandboxd finds its socket. */
export const SANDBOXD_FD = 3

/** The file descriptor of sandboxd's socket for descriptors: terminals from berth, or blank sockets to it. */
export const DESCRIPTORS_FD = 5

/** The descriptor of sandboxd's own `oom_score_adj`, if its launcher opened it because sandboxd may not. */
export const OOM_SCORE_FD = 6

/**
 * The descriptor that sandboxd inherits from the process that isolates it, if that has its own network: a copy of
 * berth's end of that process's report.
 */
export const REPORT_READER_FD = 7

const AF_INET = 2
const AF_INET6 = 10
const SOCK_STREAM = 1
const SOCK_DGRAM = 2
const SOCK_RAW = 3
const AF_NETLINK = 16
const NETLINK_NETFILTER = 12

/**
 * The unconnected sockets that sandboxd sends to berth if the sandbox has its own network, in this order. They are
 * those of IPv4 alone if the kernel has no IPv6. See `ServerNetwork` for their use.
 */
export const BLANK_SOCKETS = [AF_INET, AF_INET6].flatMap((domain) =>
  [SOCK_STREAM, SOCK_STREAM, SOCK_DGRAM].map((type) => ({ domain, type })),
)

/**
 * The netlink socket by which the rules of the network are read and made (netlink(7), NETLINK_NETFILTER). sandboxd sends
 * it last, unless the kernel has none.
 */
export const RULES_SOCKET = { domain: AF_NETLINK, type: SOCK_RAW, protocol: NETLINK_NETFILTER }

/** What of sandboxd's own variables is not the image's. */
export interface InheritedVariables {
  /** Names of variables that whoever started sandboxd has set. */
  except: readonly string[]
  /** The part of the PATH of `env` that stands for the image's. */
  path: string
}

/** Payload of `configure`, the first frame: how commands run in this sandbox. */
export interface SandboxdConfiguration {
  /** Absolute path of the workspace as commands see it; their home directory. */
  workspace: string
  /** Absolute path of the directory of caches; absent if berth reaches it itself. */
  caches?: string
  /** The clean base environment of every command. */
  env: Record<string, string>
  /** How commands inherit the variables that the image has given sandboxd; absent if there is no image. `env` is before them. */
  inherited?: InheritedVariables
  /** First 24 hex digits of every command's INVOCATION_ID: data directory and server. */
  marker: string
  confinement: Confinement
  /**
   * Limits that sandboxd has to enforce itself, for lack of a cgroup: `socketBytes`, of unread data in TCP, UDP and
   * netlink sockets of the server's own network, because a cgroup does not count all of it.
   */
  watch: { memoryBytes?: number; processes?: number; socketBytes?: number }
  /** Resource limits to set on every command. */
  rlimits: { processes?: number; fileBytes?: number }
  /** Whether berth sends terminals over `DESCRIPTORS_FD`, because sandboxd cannot open any. */
  receivesTerminals: boolean
  /** Whether sandboxd sends `BLANK_SOCKETS` and `RULES_SOCKET` over `DESCRIPTORS_FD`, because the sandbox has its own network. */
  sendsSockets: boolean
  /** Milliseconds without a frame after which berth counts as gone; null if the transport itself reports that. */
  silenceMs: number | null
}

/** Nothing is kept from commands beyond what the system keeps from their user. */
export const UNCONFINED: Confinement = {
  systemCalls: false,
  unixSockets: false,
  setIdBits: false,
  procWrites: false,
  abstractSockets: false,
}

/** Payload of `spawn`. */
export interface SpawnRequest {
  command: string
  cwd: string
  env: Record<string, string>
  /** Null for none. */
  timeoutMs: number | null
  outputLimit: number | null
  /** Whether processes that outlive the command end with it. */
  endBackground: boolean
  /**
   * Standard input: empty if null. `file`: `stdin` frames and a `begin` follow before the command starts. `pipe`: `type`
   * frames follow while it runs, and `endInput` at the end.
   */
  stdin: 'file' | 'pipe' | null
  /** Size of the command's terminal; null for pipes. */
  terminal: TerminalSize | null
}

/** Services of sandboxd. */
export type CallName =
  | (
      | 'dial'
      | 'accept'
      | 'listen'
      | 'activity'
      | 'occupied'
      | 'pause'
      | 'kill'
      | 'processes'
      | 'signal'
      | 'consumption'
    )
  | FileCallName

/** Those about the workspace's files: the methods of `Workspace` of these names. */
export type FileCallName =
  | ('list' | 'entries' | 'stat' | 'unchanged' | 'read' | 'open' | 'write' | 'remove')
  | ('moveIn' | 'mergeIn' | 'manifest' | 'pack' | 'unpack' | 'watch' | 'usage')

/** What a call about files concerns: the workspace, which is the default, or the caches, which count as its usage. */
export type FileArea = 'workspace' | 'caches'

/** Largest piece of a file that is read at a time. */
export const FILE_PIECE = 256 * 1024

/**
 * Bytes of a request in the stream of an `open` call: two f64, little-endian, for the offset and the length to read. The
 * response is the file's bytes in pieces of at most `FILE_PIECE`, each behind its length as u32, with an empty one at the
 * end if they are fewer.
 */
export const READ_REQUEST_BYTES = 16

/** Payload of `call`. */
export interface CallRequest {
  name: CallName
  input: object
}

/** Reports whether frames of this kind are about calls. */
export const isCallFrame = (kind: number): boolean => kind >= FRAME.call && kind <= FRAME.drop

/** Payload of `exit`. */
export interface ExitReport {
  exitCode: number
  timedOut: boolean
  truncated: boolean
}

/** The peer broke the protocol; nothing more is read from it. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
}

const NO_BYTES = new Uint8Array(0)

/** Returns a frame as bytes, header and payload in one piece. */
export function encodeSandboxdFrame(kind: number, id: number, payload: Uint8Array = NO_BYTES): Uint8Array {
  const frame = Buffer.allocUnsafeSlow(HEADER_BYTES + payload.length)
  frame.writeUInt32LE(payload.length, 0)
  frame.writeUInt8(kind, 4)
  frame.writeUInt32LE(id, 5)
  frame.set(payload, HEADER_BYTES)
  return frame
}

/** Returns a frame whose payload is JSON. */
export function encodeJson(kind: number, id: number, value: unknown): Uint8Array {
  return encodeSandboxdFrame(kind, id, new TextEncoder().encode(JSON.stringify(value)))
}

/** Encodes the payload of a frame that is a number, such as `credit`. */
export function encodeNumber(value: number): Uint8Array {
  const payload = new Uint8Array(4)
  new DataView(payload.buffer).setUint32(0, value, true)
  return payload
}

/** Reads a JSON payload. Throws `ProtocolError` if it is none. */
export function decodeJson(payload: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(payload))
  } catch (error) {
    throw new ProtocolError('A frame holds no valid JSON.', { cause: error })
  }
}

/** Reads a payload that is a number. Throws `ProtocolError` if it is none. */
export function decodeNumber(payload: Uint8Array): number {
  if (payload.length !== 4) throw new ProtocolError('A number in a frame is not 4 bytes long.')
  return new DataView(payload.buffer, payload.byteOffset, 4).getUint32(0, true)
}

/** Receives one frame, or a part of one whose kind is streamed. The payload is the receiver's to keep. */
export type FrameHandler = (kind: number, id: number, payload: Uint8Array) => void

/** A payload is not copied out of the chunk that it came in if that is at most so many times as large. @bound system */
const MOST_SHARE = 4

/** Cuts a byte stream into frames. Never holds more than one payload of the permitted size. */
export class FrameReader {
  readonly #maxPayload: number
  readonly #onFrame: FrameHandler
  readonly #streamed: number | undefined
  readonly #header = new DataView(new ArrayBuffer(HEADER_BYTES))
  #headerFilled = 0
  /** Bytes of the payload that have not come. */
  #left = 0
  /** A payload that comes in more than one chunk. */
  #payload: Uint8Array | null = null

  /** @param streamed the kind of frames whose payloads are passed on in parts, as they come: joining them would be a copy */
  constructor(maxPayload: number, onFrame: FrameHandler, streamed?: number) {
    this.#maxPayload = maxPayload
    this.#onFrame = onFrame
    this.#streamed = streamed
  }

  /** Takes the next bytes of the stream, which must not change. Throws `ProtocolError` at a frame that is too large. */
  push(chunk: Uint8Array): void {
    let at = 0
    while (at < chunk.length) {
      if (this.#headerFilled < HEADER_BYTES) {
        at += this.#fillHeader(chunk.subarray(at, at + HEADER_BYTES))
        if (this.#headerFilled < HEADER_BYTES) return
        this.#left = this.#length
        if (this.#left > this.#maxPayload) {
          throw new ProtocolError(
            `A frame announces ${this.#left} bytes; at most ${this.#maxPayload} are taken.`,
          )
        }
        if (this.#left > 0 && at === chunk.length) return
      }
      const piece = chunk.subarray(at, at + this.#left)
      at += piece.length
      this.#take(piece, piece.length < chunk.length / MOST_SHARE)
    }
  }

  get #length(): number {
    return this.#header.getUint32(0, true)
  }

  #fillHeader(chunk: Uint8Array): number {
    const piece = chunk.subarray(0, HEADER_BYTES - this.#headerFilled)
    for (const byte of piece) this.#header.setUint8(this.#headerFilled++, byte)
    return piece.length
  }

  /** Takes the next part of a payload. @param isSmall whether it would keep a much larger chunk in memory */
  #take(piece: Uint8Array, isSmall: boolean): void {
    const kind = this.#header.getUint8(4)
    const length = this.#length
    let part = piece
    if (piece.length < length && kind !== this.#streamed) {
      this.#payload ??= new Uint8Array(length)
      this.#payload.set(piece, length - this.#left)
      part = this.#payload
    } else if (isSmall) part = new Uint8Array(piece)
    this.#left -= piece.length
    const isOver = this.#left === 0
    if (isOver) {
      this.#headerFilled = 0
      this.#payload = null
    }
    if (isOver || kind === this.#streamed) this.#onFrame(kind, this.#header.getUint32(5, true), part)
  }
}
