import { BerthError, badRequest } from '../../errors.ts'
import { isAccepted } from '../../http/accept.ts'
import { identifyingHeaders } from '../../http/request-entry.ts'
import { EVENT_STREAM_TYPE, type StreamRun } from '../../http/sse.ts'
import {
  checkVersion,
  SHARED_ENDS,
  type Socket,
  type SocketEnd,
  type SocketListener,
  type SocketUpgrader,
  wantsSocket,
} from '../../http/web-socket.ts'
import { messageOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import {
  type ChangeMessage,
  type ChangeSource,
  type SendMessage,
  type StreamSignal,
  streamChanges,
} from './stream.ts'

/** Dependencies of the streams. */
export interface StreamsDependencies {
  sockets: SocketUpgrader
  logger: Logger
}

/** A request for a stream, with what its route has of it. */
export interface StreamRequest {
  request: Request
  /** The settings of its response. */
  set: { headers: Record<string, unknown> }
  /** Responds with an event stream. */
  stream: (run: StreamRun) => Response
  /** Calls its argument if the caller's credential ends, until the returned function is called. */
  whileValid: (ended: () => void) => () => void
  /** Why its socket is closed when the credential ends. */
  endOfCredential: SocketEnd
}

/** The state was replaced, so all that a reader knows is old. */
const REPLACED: SocketEnd = { code: 4007, reason: 'the state was replaced by a reset or a snapshot' }

/** The open streams of changes: WebSockets and event streams. */
export class ChangeStreams {
  readonly #dependencies: StreamsDependencies
  /** Fires when all streams have to end; its reason is a `SocketEnd`. */
  readonly #ending = new AbortController()

  constructor(dependencies: StreamsDependencies) {
    this.#dependencies = dependencies
  }

  /**
   * Responds with a WebSocket to a handshake, else with an event stream.
   *
   * @throws BerthError 400 for a handshake that lacks something, 401, 426 if it accepts no event stream, 503
   */
  respond<Type extends string>(source: ChangeSource<Type>, request: StreamRequest): Response {
    if (this.#ending.signal.aborted) {
      throw new BerthError('service_unavailable', 'berth is stopping, or its state is replaced. Try again.')
    }
    const run = (send: SendMessage, ended: AbortSignal): Promise<void> => this.#run(source, send, ended)
    if (wantsSocket(request.request)) return this.#upgrade(run, request)
    // There is no JSON to prefer.
    if (isAccepted(request.request.headers.get('accept'), EVENT_STREAM_TYPE))
      return request.stream((send, gone) => run((message) => send(message.type, message), gone))
    throw new BerthError(
      'upgrade_required',
      'Changes are streamed: send a handshake of a WebSocket, or "Accept: text/event-stream".',
    )
  }

  /** Ends all streams because berth stops. */
  stop(): void {
    this.#ending.abort(SHARED_ENDS.stopping)
  }

  /** Ends all streams because the state is replaced, with a last message that says so. */
  replace(): void {
    this.#ending.abort(REPLACED)
  }

  async #run<Type extends string>(
    source: ChangeSource<Type>,
    send: SendMessage,
    ended: AbortSignal,
  ): Promise<void> {
    const ending = this.#ending.signal
    try {
      await streamChanges(source, send, AbortSignal.any([ended, ending]))
    } catch (error) {
      // A read may fail because the state is being closed.
      if (!ended.aborted && !ending.aborted) {
        this.#dependencies.logger.error('a change could not be read', { error: messageOf(error) })
        throw error
      }
    }
    if (ending.reason === REPLACED && !ended.aborted) await send({ type: 'reset' })
  }

  #upgrade(
    run: (send: SendMessage, ended: AbortSignal) => Promise<void>,
    { request, set, whileValid, endOfCredential }: StreamRequest,
  ): Response {
    checkVersion(request)
    const { sockets } = this.#dependencies
    const ending = this.#ending.signal
    const socket = new ChangeSocket({
      run,
      ending,
      endOfRun: () => ending.reason,
      onClosed: () => unsubscribe(),
    })
    const unsubscribe = whileValid(() => socket.close(endOfCredential))
    const headers = identifyingHeaders(set)
    if (sockets.upgrade(request, socket, headers)) return new Response(null, { status: 101 })
    unsubscribe()
    throw badRequest('The handshake of the WebSocket lacks a header, such as Sec-WebSocket-Key.')
  }
}

/** Bytes on their way to a reader from which it is sent nothing until it has read. */
const FULL_BYTES = 1024 * 1024

/** Milliseconds between pings, and in which one has to be answered. */
const PING_MS = 30_000
const SILENCE_MS = 120_000

/** What a socket sends, and what ends it. */
interface ChangeSocketOptions {
  /** Sends messages until the signal fires. It begins when the socket is open. */
  run: (send: SendMessage, ended: AbortSignal) => Promise<void>
  /** Fires when all streams have to end: the socket then waits no longer for its reader. */
  ending: AbortSignal
  /** Returns why `run` has ended by itself. */
  endOfRun: () => SocketEnd
  /** Called when it is closed. */
  onClosed: () => void
}

/** One WebSocket with a stream of changes. What its reader sends is ignored. */
export class ChangeSocket implements SocketListener {
  readonly #options: ChangeSocketOptions
  readonly #ended = new AbortController()
  #socket: Socket | null = null
  /** Resolves when the reader has room again; null while it has. */
  #room: PromiseWithResolvers<void> | null = null
  #pings: Timer | undefined
  #heardAt = 0

  constructor(options: ChangeSocketOptions) {
    this.#options = options
  }

  /** Closes the socket. Further calls have no effect. */
  close({ code, reason }: SocketEnd): void {
    if (this.#ended.signal.aborted) return
    this.#end()
    this.#socket?.close(code, reason)
  }

  opened(socket: Socket): void {
    this.#socket = socket
    // It may have been closed before it was open.
    if (this.#ended.signal.aborted) {
      socket.terminate()
      return
    }
    this.#heardAt = performance.now()
    this.#pings = setInterval(() => this.#ping(), PING_MS)
    this.#pings.unref()
    const { run, ending, endOfRun } = this.#options
    ending.addEventListener('abort', this.#release)
    run((message) => this.#send(message), this.#ended.signal).then(
      () => {
        if (!this.#ended.signal.aborted) this.close(endOfRun())
      },
      () => this.close(FAILED),
    )
  }

  message(): void {}

  drained(): void {
    if ((this.#socket?.getBufferedAmount() ?? 0) >= FULL_BYTES) return
    this.#release()
  }

  ponged(): void {
    this.#heardAt = performance.now()
  }

  closed(): void {
    this.#end()
  }

  readonly #release = (): void => {
    this.#room?.resolve()
    this.#room = null
  }

  #send(message: ChangeMessage | StreamSignal): Promise<void> | undefined {
    const socket = this.#socket
    if (socket === null || this.#ended.signal.aborted) return undefined
    socket.send(JSON.stringify(message))
    if (socket.getBufferedAmount() < FULL_BYTES) return undefined
    this.#room = Promise.withResolvers()
    return this.#room.promise
  }

  #ping(): void {
    if (performance.now() - this.#heardAt > SILENCE_MS) {
      const socket = this.#socket
      this.close(SILENT)
      socket?.terminate()
    } else this.#socket?.ping()
  }

  #end(): void {
    clearInterval(this.#pings)
    if (this.#ended.signal.aborted) return
    this.#ended.abort()
    this.#options.ending.removeEventListener('abort', this.#release)
    this.#release()
    this.#options.onClosed()
  }
}

/** An internal error (RFC 6455, section 7.4.1). */
const FAILED: SocketEnd = { code: 1011, reason: 'a change could not be read' }

const SILENT: SocketEnd = { code: 4008, reason: 'the reader has not read or answered for two minutes' }
