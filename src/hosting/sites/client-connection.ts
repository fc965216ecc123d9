import {
  BAD_BODY,
  beginningOf,
  type Content,
  exchange,
  ownResponse,
  type SiteResponse,
  sendMessage,
  UPGRADE,
} from './exchange.ts'
import { Body, CutOff, MalformedBody } from './http1/body.ts'
import { ByteStream, copy, type StreamSocket } from './http1/byte-stream.ts'
import { checkRequestBeginning, parseRequest, Refusal, type RequestHead, readHead } from './http1/head.ts'
import { refusalResponse } from './own-response.ts'
import type { SiteState } from './site-state.ts'

/** The socket of a client's connection. A `Bun.Socket` is one. */
export interface ClientSocket extends StreamSocket {
  /** Address of the client. */
  readonly remoteAddress: string
  /** Closes the sending half. Bytes that still arrive are read. */
  shutdown(): void
}

const CLOSE = 'Connection: close\r\n'
const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n')

/** A client's connection to a site's own port. Serves its requests one after the other. */
export class ClientConnection extends ByteStream {
  readonly #socket: ClientSocket
  readonly #address: string
  readonly #state: SiteState
  readonly #abort = new AbortController()
  /** When the connection began to wait for a request; null during one. */
  #waitsSince: number | null = performance.now()
  /** Whether a part of a head has arrived. */
  #hasBegun = false
  /** Closes a connection whose head, or whose end, is overdue. */
  #timer: Timer
  /** Whether no further request is served. */
  #isClosing = false

  constructor(socket: ClientSocket, state: SiteState) {
    super()
    this.#socket = socket
    this.#address = socket.remoteAddress
    this.#state = state
    this.#timer = setTimeout(() => this.#check(), state.times.headMs)
    this.opened(socket)
    state.clients.add(this)
    void this.#serve()
  }

  /** Closes the connection if it has waited that long for a request, or for the rest of its head. */
  expire(ms: number): void {
    if (this.#waitsSince === null || this.#isClosing || performance.now() - this.#waitsSince < ms) return
    if (this.#hasBegun) void this.#refuse(new Refusal(408, 'The head of the request did not come in time.'))
    else this.end()
  }

  override data(chunk: Buffer): void {
    if (this.#waitsSince !== null && !this.#hasBegun) {
      // The time that the connection was idle before does not count.
      this.#waitsSince = performance.now()
      this.#hasBegun = true
    }
    super.data(chunk)
  }

  override closed(failed: boolean): void {
    if (this.isClosed) return
    super.closed(failed)
    clearTimeout(this.#timer)
    this.#state.clients.delete(this)
    this.#abort.abort()
  }

  /** Closes the connection if a head is overdue, or looks again when one may be. */
  #check(): void {
    const { headMs } = this.#state.times
    this.expire(headMs)
    if (this.isClosed || this.#isClosing) return
    const waited = this.#waitsSince === null ? 0 : performance.now() - this.#waitsSince
    this.#timer = setTimeout(() => this.#check(), Math.max(1, headMs - waited))
  }

  async #serve(): Promise<void> {
    try {
      while (!this.isClosed && !this.#isClosing) await this.#serveNext()
    } catch (error) {
      if (error instanceof Refusal) return await this.#refuse(error)
      if (!this.isClosed) this.terminate()
      if (!(error instanceof MalformedBody || error instanceof CutOff)) this.#state.reportFailure(error)
    }
  }

  async #serveNext(): Promise<void> {
    const text = await readHead(this, checkRequestBeginning)
    if (text === null || this.#isClosing) return
    this.#waitsSince = null
    this.#hasBegun = false
    const head = parseRequest(text)
    this.#state.checkHost(head.host)
    const body = new Body(this, head.framing, head.length)
    const request = {
      head,
      ...requestContentOf(body),
      address: this.#address,
      signal: this.#abort.signal,
      // HTTP/1.0 knows no interim responses.
      sendContinue: () => void (head.minor === 1 && this.write(CONTINUE)),
    }
    let keepsAlive = head.keepAlive
    await exchange(request, this.#state, async (response) => {
      keepsAlive &&= body.isOver && !this.#state.closing.aborted && isDelimited(response, head)
      await this.#respond(response, head, keepsAlive)
    })
    this.#waitsSince = performance.now()
    this.#hasBegun = this.hasArrived
    if (!keepsAlive) await this.#linger()
  }

  async #respond(response: SiteResponse, head: RequestHead, keepsAlive: boolean): Promise<void> {
    const { tunnel, framing } = response
    if (tunnel !== null) {
      this.writeMessage(headOf(response, UPGRADE), null)
      await Promise.race([copy(this, tunnel), copy(tunnel, this)])
      await tunnel.flushed()
      return
    }
    // HTTP/1.0 knows no chunks.
    const unchunks = framing === 'chunked' && head.minor === 0
    const { lines } = response
    const shown = unchunks ? lines.replace(/^transfer-encoding:.*\r\n/im, '') : lines
    const bytes = headOf({ ...response, lines: shown }, keepsAlive ? '' : CLOSE)
    try {
      await sendMessage(this, bytes, framing === 'chunked' && !unchunks, response)
    } catch (error) {
      // A client would take the end of the connection for the end of the content.
      if (!(error instanceof CutOff) || !isDelimited(response, head)) throw error
      await this.flushed()
      this.end()
    }
  }

  /** Responds with a refusal and closes the connection. */
  async #refuse(refusal: Refusal): Promise<void> {
    const response = ownResponse(refusalResponse(refusal), null)
    this.#isClosing = true
    await sendMessage(this, headOf(response, CLOSE), false, response)
    await this.#linger()
  }

  /** Closes the connection. First reads on for a while: unread data would destroy the last response. */
  async #linger(): Promise<void> {
    const { headMs, lingerMs } = this.#state.times
    this.#isClosing = true
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.terminate(), headMs)
    await this.flushed()
    if (this.isClosed) return
    this.ignoreRest()
    this.#socket.shutdown()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.terminate(), lingerMs)
  }
}

/** @throws Refusal if what has arrived is malformed */
function requestContentOf(body: Body): Content {
  try {
    return beginningOf(body)
  } catch (error) {
    throw error instanceof MalformedBody ? new Refusal(400, BAD_BODY) : error
  }
}

/** Reports whether a client can tell the end of a response from the end of the connection. */
const isDelimited = ({ framing }: SiteResponse, { minor }: RequestHead): boolean =>
  framing !== 'close' && (framing !== 'chunked' || minor === 1)

/** Returns the head of a response in HTTP/1.1. @param more further lines */
export const headOf = (
  { statusText, lines }: Pick<SiteResponse, 'statusText' | 'lines'>,
  more: string,
): string => `HTTP/1.1 ${statusText}\r\n${lines}${more}\r\n`
