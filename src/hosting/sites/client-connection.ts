import type { CutOff } from './app-connection.ts'
import { BufferedWriter, type Duplex } from './buffered-writer.ts'
import { findHeadEnd, HEAD_LIMIT, hasBareLf, type Refusal } from './http1/head.ts'
import { ownBytes, refusalResponse } from './own-response.ts'
import { BAD_BODY, PortRequest, type RequestConnection } from './port-request.ts'
import type { SiteClient, SiteState } from './site-state.ts'

/**
 * How a connection ends: at once, or after reading on for a while. Unread data at the close would destroy the last
 * response.
 */
type Ending = 'end' | 'linger'

/** What a connection does. Times are by the gateway's clock. */
type Phase =
  /** Waits for a request, of whose head `#unparsed` has a part. */
  | { readonly kind: 'head'; readonly since: number }
  /** A request is under way. Bytes are its body; after that, `#unparsed` keeps them. */
  | { readonly kind: 'request' }
  /** Bytes pass both ways, unread. */
  | { readonly kind: 'tunnel' }
  /** Writes what is left, then ends. Drops what the client sends. */
  | { readonly kind: 'closing'; readonly since: number; readonly ending: Ending }
  /** The socket is closed. */
  | { readonly kind: 'closed' }

const REQUEST: Phase = { kind: 'request' }
const TUNNEL: Phase = { kind: 'tunnel' }
const CLOSED: Phase = { kind: 'closed' }

/**
 * A client's connection to a site's own port. Finds its requests one after the other and reads nothing as long as
 * earlier bytes wait.
 *
 *     head ── head is complete ─► request ── 101 ─► tunnel
 *      ▲                           │
 *      └── response is complete ───┘
 *     head, request, tunnel ── refused, overdue, not kept alive, cut off ─► closing ─► closed
 *     any ── the client has disconnected, or the site closes ─► closed
 *
 * The bytes of a client pass from the socket through the connection, its `PortRequest`, an `Exchange` and an
 * `AppConnection` to the app. Each calls the next one directly; the way back is an interface that the next one names.
 */
export class ClientConnection implements SiteClient, RequestConnection {
  readonly writer: BufferedWriter
  readonly #state: SiteState
  readonly #request: PortRequest
  #phase: Phase
  /** Bytes of an incomplete head, or bytes after the current request. */
  #unparsed: Buffer | null = null
  /** Whether reading is paused. */
  #paused = false

  constructor(duplex: Duplex, state: SiteState) {
    this.writer = new BufferedWriter(duplex)
    this.#state = state
    this.#request = new PortRequest(this, state)
    state.addClient(this)
    this.#phase = { kind: 'head', since: state.now }
  }

  // Events of the socket.

  /** Takes the bytes that the client has sent. */
  receive(chunk: Buffer): void {
    const phase = this.#phase
    switch (phase.kind) {
      case 'head': {
        const partial = this.#unparsed
        this.#unparsed = null
        // The time that the connection was idle before does not count.
        if (partial === null) this.#takeHead(chunk, this.#state.now)
        else this.#takeHead(Buffer.concat([partial, chunk]), phase.since)
        break
      }
      case 'request':
        if (this.#request.isComplete) this.#keep(chunk)
        else this.#takeBody(chunk)
        break
      case 'tunnel':
        this.#request.sendOn(chunk, chunk.length)
        this.adjustReading()
        break
    }
  }

  /** Continues, because the client accepts more. */
  drain(): void {
    if (!this.writer.flush()) return
    this.#request.drained()
    if (this.#phase.kind === 'closing') this.#close(this.#phase.ending)
    else this.#proceed()
  }

  /** Notes that the socket is closed. */
  closed(): void {
    if (this.isClosed) return
    this.#phase = CLOSED
    this.#state.removeClient(this)
    this.#request.abort()
  }

  // `SiteClient`, for the site.

  /** See `SiteClient.sweep`. */
  sweep(headBefore: number, lingerBefore: number): void {
    const phase = this.#phase
    if (phase.kind === 'closing') {
      if (phase.since < (this.writer.empty ? lingerBefore : headBefore)) this.writer.duplex.terminate()
    } else if (phase.kind === 'head' && phase.since < headBefore && this.writer.empty) {
      if (this.#unparsed === null) this.#close('end')
      else this.#refuse({ status: 408, message: 'The head of the request did not come in time.' })
    }
  }

  /** See `SiteClient.terminate`. */
  terminate(): void {
    this.closed()
    this.writer.duplex.terminate()
  }

  // `RequestConnection`, for the request.

  /** See `RequestConnection.isClosed`. */
  get isClosed(): boolean {
    return this.#phase.kind === 'closed'
  }

  /** Pauses reading while bytes wait for the end of the request, or the request accepts none. */
  adjustReading(): void {
    const pause = (this.#unparsed !== null && this.#phase.kind !== 'head') || this.#request.isFull
    if (pause === this.#paused) return
    this.#paused = pause
    if (pause) this.writer.duplex.pause()
    else this.writer.duplex.resume()
  }

  /** See `RequestConnection.becomeTunnel`. */
  becomeTunnel(): Buffer | null {
    this.#phase = TUNNEL
    const ahead = this.#unparsed
    this.#unparsed = null
    return ahead
  }

  /** Waits for the next request, or closes. */
  requestEnded(): void {
    if (this.isClosed) return
    if (!this.#request.keepsAlive || this.#state.closing) {
      this.#close(this.#request.isComplete && this.#unparsed === null ? 'end' : 'linger')
      return
    }
    this.#phase = { kind: 'head', since: this.#state.now }
    if (this.#unparsed !== null || this.#paused) this.#proceed()
  }

  /** See `RequestConnection.cutOff`. */
  cutOff(how: CutOff): void {
    if (how === 'reset') this.writer.duplex.terminate()
    else this.#close('end')
  }

  /** Begins with the request of a head that began at `since`. If the head is incomplete, waits for the rest. */
  #takeHead(bytes: Buffer, since: number): void {
    let start = 0
    // Empty lines before a request are ignored (RFC 9112, section 2.2).
    while (start < 4 && bytes[start] === 13 && bytes[start + 1] === 10) start += 2
    const end = findHeadEnd(bytes, start)
    if (end === -1 || end - start > HEAD_LIMIT) {
      this.#awaitHead(bytes, start, since)
      return
    }
    const request = this.#request
    const refusal = request.parse(bytes, start, end)
    if (refusal !== null) {
      this.#refuse(refusal)
      return
    }
    this.#phase = REQUEST
    if (request.isComplete && request.end < bytes.length) this.#keep(bytes.subarray(request.end))
    request.begin()
  }

  #awaitHead(bytes: Buffer, start: number, since: number): void {
    if (bytes.length - start > HEAD_LIMIT) {
      this.#refuse({ status: 431, message: `The head of a request may have ${HEAD_LIMIT} bytes.` })
    } else if (hasBareLf(bytes)) {
      this.#refuse({ status: 400, message: 'A line ends without its CR.' })
    } else if (bytes.length > 0) {
      this.#phase = { kind: 'head', since }
      this.#unparsed = bytes
    }
  }

  #takeBody(chunk: Buffer): void {
    const request = this.#request
    const end = request.parseBody(chunk)
    if (end === -1) {
      const { isResponded } = request
      request.abort()
      if (isResponded) this.cutOff('reset')
      else this.#refuse(BAD_BODY)
      return
    }
    if (request.isComplete && end < chunk.length) this.#keep(chunk.subarray(end))
    request.sendOn(chunk, end)
    this.adjustReading()
  }

  /** Keeps bytes until the current request is over. */
  #keep(chunk: Buffer): void {
    this.#unparsed = this.#unparsed === null ? chunk : Buffer.concat([this.#unparsed, chunk])
    this.adjustReading()
  }

  /** Responds with a refusal and closes. */
  #refuse(refusal: Refusal): void {
    const bytes = ownBytes(refusalResponse(refusal), null, false, this.#state.date)
    this.writer.write(bytes, 0, bytes.length, false)
    this.#close('linger')
  }

  /** Continues with the bytes that the client has sent ahead. */
  #proceed(): void {
    if (this.#unparsed === null || this.#phase.kind !== 'head') {
      this.adjustReading()
      return
    }
    // Deferred: for many pipelined requests, a direct call would deepen the stack with each.
    queueMicrotask(() => {
      const ahead = this.#unparsed
      if (ahead === null || this.#phase.kind !== 'head' || !this.writer.empty) return
      this.#unparsed = null
      this.#takeHead(ahead, this.#state.now)
      this.adjustReading()
    })
  }

  #close(ending: Ending): void {
    this.#phase = { kind: 'closing', since: this.#state.now, ending }
    if (!this.writer.empty) return
    this.#unparsed = null
    if (ending === 'end') this.writer.duplex.end()
    else {
      this.writer.duplex.shutdown()
      this.adjustReading()
    }
  }
}
