import { BerthError } from '../errors.ts'
import type { Caller } from './caller.ts'

/** The data of a WebSocket of the main port: receives its events. None of the methods may throw. */
export interface SocketListener {
  /** Called once, first. */
  opened(socket: Socket): void
  /** Receives a message: a text, or bytes that are the receiver's to keep. */
  message(message: string | Buffer): void
  /** Called when what was sent before is on its way, so more may be sent. */
  drained?(): void
  /** Called when the peer has answered a ping. */
  ponged?(): void
  /** Called once, last, whichever side has closed it. */
  closed(code: number, reason: string): void
}

/** A WebSocket of the main port. */
export type Socket = Bun.ServerWebSocket<SocketListener>

/**
 * Largest message of a WebSocket, in bytes. A larger one closes the socket with 1009. It is in memory until it is whole.
 * @bound client
 */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024

/** The handlers of all WebSockets of the main port. Each socket's own listener has the rules. */
export const SOCKET_HANDLERS: Bun.WebSocketHandler<SocketListener> = {
  maxPayloadLength: MAX_MESSAGE_BYTES,
  // A client that does not read loses its connection.
  backpressureLimit: 128 * 1024 * 1024,
  closeOnBackpressureLimit: true,
  idleTimeout: 0,
  open: (socket) => socket.data.opened(socket),
  message: (socket: Socket, message) => socket.data.message(message),
  drain: (socket) => socket.data.drained?.(),
  pong: (socket) => socket.data.ponged?.(),
  close: (socket, code, reason) => socket.data.closed(code, reason),
}

/** Turns requests into WebSockets. */
export interface SocketUpgrader {
  /**
   * Turns a request into a WebSocket. Its response is then ignored.
   *
   * @param headers of the handshake's response
   * @returns false if the request is no handshake (RFC 6455, section 4.1), or its connection is closed
   */
  upgrade(request: Request, listener: SocketListener, headers: Record<string, string>): boolean
}

/** Reports whether a request asks for a WebSocket. */
export const wantsSocket = (request: Request): boolean =>
  request.headers.get('upgrade')?.toLowerCase() === 'websocket'

/** The version of the protocol that is spoken (RFC 6455, section 4.1). */
const VERSION = '13'

/** The header of a 426 for another version (RFC 6455, section 4.4). */
export const SPOKEN_VERSION = { 'sec-websocket-version': VERSION } as const

/**
 * Refuses the handshake of another version of the protocol. Bun would refuse it too, without a body.
 *
 * @throws BerthError 426
 */
export function checkVersion(request: Request): void {
  const version = request.headers.get('sec-websocket-version')
  if (version === null || version === VERSION) return
  throw new BerthError(
    'upgrade_required',
    `The handshake asks for version ${version.slice(0, 20)} of WebSocket. Only version ${VERSION} is spoken: send "Sec-WebSocket-Version: ${VERSION}".`,
  )
}

/** Why berth closes a WebSocket: a code for programs (RFC 6455, section 7.4.2), a reason for people. */
export interface SocketEnd {
  readonly code: number
  readonly reason: string
}

/** The reasons that all WebSockets of the API have in common. docs/terminals.md and docs/changes.md list them. */
export const SHARED_ENDS = {
  sessionEnded: { code: 4001, reason: "the browser's session has ended" },
  credentialChanged: { code: 4002, reason: 'the key or token was ended, or reaches something else now' },
  stopping: { code: 4005, reason: 'berth is stopping or its state is replaced' },
} as const satisfies Record<string, SocketEnd>

/** Returns the reason to close a WebSocket whose caller's credential has ended. */
export const credentialEnd = ({ credentialId }: Caller): SocketEnd =>
  SHARED_ENDS[credentialId.startsWith('ses_') ? 'sessionEnded' : 'credentialChanged']
