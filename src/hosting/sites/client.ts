import { type OwnAnswer, ownAnswer, refusalAnswer } from './answers.ts'
import { Exchange } from './exchange.ts'
import { Body } from './http1/body.ts'
import { findHeadEnd, HEAD_LIMIT, hasBareLf, type Refusal } from './http1/head.ts'
import { RequestHead } from './http1/request-head.ts'
import { Outlet, type Wire } from './outlet.ts'
import type { Traffic } from './traffic.ts'

const BAD_BODY: Refusal = { status: 400, message: 'The body is not in chunks as its header says.' }

/** How a connection ends: at once, or by reading on for a while so that the last answer is not lost by what was not read. */
type Ending = 'end' | 'linger'

/**
 * One connection of a client to a site. It reads requests one after the other; each is answered by its
 * exchange. Nothing is read while what was read before has nowhere to go.
 */
export class ClientConnection {
  readonly outlet: Outlet
  readonly traffic: Traffic
  /** The request under way, or the last. */
  readonly head = new RequestHead()
  readonly body = new Body()
  /** Answers go out without chunks and end with the connection, whatever the request's version. */
  readonly whole: boolean
  /** What an app is told of this client. */
  told: Uint8Array = new Uint8Array(0)
  readonly #exchange: Exchange
  #phase: 'head' | 'exchange' | 'tunnel' | 'closing' | 'closed' = 'head'
  /** By the gateway's time: since when a head, or the end, is awaited. */
  #since: number
  /** Bytes of a head that is not whole yet, or behind the request under way. */
  #ahead: Buffer | null = null
  #paused = false
  /** The Host that was checked last. */
  #checkedHost: string | null | undefined
  #ending: Ending = 'end'

  constructor(wire: Wire, traffic: Traffic, whole = false) {
    this.outlet = new Outlet(wire)
    this.traffic = traffic
    this.whole = whole
    this.#exchange = new Exchange(this)
    traffic.join(this)
    this.#since = traffic.now
  }

  /** Whether it has gone. */
  get gone(): boolean {
    return this.#phase === 'closed'
  }

  /** The wire brings bytes. */
  receive(chunk: Buffer): void {
    switch (this.#phase) {
      case 'head': {
        const ahead = this.#ahead
        this.#ahead = null
        if (ahead === null) this.#takeHead(chunk)
        else this.#takeHead(Buffer.concat([ahead, chunk]), false)
        break
      }
      case 'exchange':
        if (this.body.done) this.#stash(chunk)
        else this.#takeBody(chunk)
        break
      case 'tunnel':
        this.#exchange.sendOn(chunk, 0, chunk.length)
        this.adjust()
        break
    }
  }

  /** The wire takes more. */
  drain(): void {
    if (!this.outlet.flush()) return
    this.#exchange.drained()
    if (this.#phase === 'closing') this.#close(this.#ending)
    else this.#proceed()
  }

  /** The wire has ended. */
  closed(): void {
    if (this.#phase === 'closed') return
    this.#phase = 'closed'
    this.traffic.clients.delete(this)
    this.#exchange.abort()
  }

  /** Ends a connection whose head, or end, is awaited for longer than it may. Both by the gateway's time. */
  sweep(headBefore: number, lingerBefore: number): void {
    if (this.#phase === 'closing') {
      if (this.#since < (this.outlet.empty ? lingerBefore : headBefore)) this.outlet.wire.terminate()
    } else if (this.#phase === 'head' && this.#since < headBefore && this.outlet.empty) {
      if (this.#ahead === null) this.#close('end')
      else this.#refuse({ status: 408, message: 'The head of the request did not come in time.' })
    }
  }

  /** Reads or pauses, as there is room for what comes. */
  adjust(): void {
    const pause = (this.#ahead !== null && this.#phase !== 'head') || this.#exchange.full
    if (pause === this.#paused) return
    this.#paused = pause
    if (pause) this.outlet.wire.pause()
    else this.outlet.wire.resume()
  }

  /** The request has become a tunnel. @returns what the client has sent ahead, which belongs to it */
  becomeTunnel(): Buffer | null {
    this.#phase = 'tunnel'
    const ahead = this.#ahead
    this.#ahead = null
    return ahead
  }

  /** The exchange is over. @param keepAlive whether a further request may come */
  finish(keepAlive: boolean): void {
    if (this.#phase === 'closed') return
    if (!keepAlive || !this.body.done || this.traffic.closing) {
      this.#close(this.body.done && this.#ahead === null ? 'end' : 'linger')
      return
    }
    this.#phase = 'head'
    this.#since = this.traffic.now
    if (this.#ahead !== null || this.#paused) this.#proceed()
  }

  /** The answer cannot be brought to its end. @param visibly by a failure of the connection, where its end would look whole */
  cutOff(visibly: boolean): void {
    if (visibly) this.outlet.wire.terminate()
    else this.#close('end')
  }

  #takeHead(bytes: Buffer, first = true): void {
    let start = 0
    // An empty line before a request is passed over (RFC 9112, 2.2).
    while (start < 4 && bytes[start] === 13 && bytes[start + 1] === 10) start += 2
    const end = findHeadEnd(bytes, start)
    if (end === -1 || end - start > HEAD_LIMIT) {
      this.#awaitHead(bytes, start, first)
      return
    }
    const refusal = this.head.parse(bytes, start, end) ?? this.#checkHost()
    if (refusal !== null) {
      this.#refuse(refusal)
      return
    }
    this.body.begin(this.head.framing, this.head.length)
    const bodyEnd = this.body.consume(bytes, end, bytes.length)
    if (bodyEnd === -1) {
      this.#refuse(BAD_BODY)
      return
    }
    this.#phase = 'exchange'
    if (this.body.done && bodyEnd < bytes.length) this.#stash(bytes.subarray(bodyEnd))
    this.#exchange.begin(bytes, bodyEnd)
  }

  #awaitHead(bytes: Buffer, start: number, first: boolean): void {
    if (bytes.length - start > HEAD_LIMIT) {
      this.#refuse({ status: 431, message: `The head of a request may have ${HEAD_LIMIT} bytes.` })
    } else if (hasBareLf(bytes)) {
      this.#refuse({ status: 400, message: 'A line ends without its CR.' })
    } else if (bytes.length > 0) {
      // The time that it was idle before does not count.
      if (first) this.#since = this.traffic.now
      this.#ahead = bytes
    }
  }

  #checkHost(): Refusal | null {
    const { host } = this.head
    if (this.#checkedHost === host) return null
    const refusal = this.traffic.checkHost(host)
    if (refusal !== null) return refusal
    this.#checkedHost = host
    this.told = this.traffic.tell(this.outlet.wire.remoteAddress, host)
    return null
  }

  #takeBody(chunk: Buffer): void {
    const end = this.body.consume(chunk, 0, chunk.length)
    if (end === -1) {
      const { answered } = this.#exchange
      this.#exchange.abort()
      if (answered) this.cutOff(true)
      else this.#refuse(BAD_BODY)
      return
    }
    if (this.body.done && end < chunk.length) this.#stash(chunk.subarray(end))
    this.#exchange.sendOn(chunk, 0, end)
    this.adjust()
  }

  /** Keeps what is not to be read yet. */
  #stash(chunk: Buffer): void {
    this.#ahead = this.#ahead === null ? chunk : Buffer.concat([this.#ahead, chunk])
    this.adjust()
  }

  #refuse(refusal: Refusal): void {
    const answer: OwnAnswer = refusalAnswer(refusal)
    const bytes = ownAnswer(answer, null, false)
    this.outlet.write(bytes, 0, bytes.length, false)
    this.#close('linger')
  }

  /** Goes on with what the client has sent ahead. */
  #proceed(): void {
    if (this.#ahead === null || this.#phase !== 'head') {
      this.adjust()
      return
    }
    // Not within the answer before: a client that sends many at once would deepen the stack with each.
    queueMicrotask(() => {
      const ahead = this.#ahead
      if (ahead === null || this.#phase !== 'head' || !this.outlet.empty) return
      this.#ahead = null
      this.#takeHead(ahead)
      this.adjust()
    })
  }

  #close(how: Ending): void {
    this.#ending = how
    this.#phase = 'closing'
    this.#since = this.traffic.now
    if (!this.outlet.empty) return
    this.#ahead = null
    if (how === 'end') this.outlet.wire.end()
    else {
      this.outlet.wire.shutdown()
      this.adjust()
    }
  }
}
