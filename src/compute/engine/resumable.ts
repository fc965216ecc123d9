import { messageOf } from '../../runtime/error-info.ts'
import { once } from '../../runtime/once.ts'
import { systemRandom } from '../../runtime/random.ts'
import { within } from '../../runtime/wait.ts'
import { ComputeError } from '../sandbox.ts'
import { FrameChannel } from '../sandboxd/channel.ts'
import { ProtocolError } from '../sandboxd/protocol.ts'
import {
  CARRIED,
  MAX_CARRIED,
  ResumableStream,
  type StreamTimes,
  sign,
  verify,
  type Welcome,
} from '../sandboxd/resumable.ts'
import type { FrameTransport, TransportHandlers } from '../sandboxd/transport.ts'

/** Milliseconds before the second attempt to reach sandboxd, and at most between two; each wait is twice the last one. */
const FIRST_PAUSE_MS = 25
const LAST_PAUSE_MS = 2_000

/** Milliseconds for which an interruption is not worth mentioning: most carriers are replaced by then. */
const SHORT_MS = 2_000

/** Longest sentence that is taken from sandboxd. @bound program */
const MAX_SENTENCE = 500

/** Why no bytes reach a server, a sentence, and since when by `performance.now()`. */
interface Interruption {
  readonly since: number
  readonly cause: string
}

/** Thrown by `connect` if the server has ended, so that no other attempt is made. */
export class ServerGone extends ComputeError {}

/** The options of `ResumableTransport`. */
export interface ResumableOptions extends Partial<Pick<StreamTimes, 'pingMs' | 'silenceMs'>> {
  /**
   * Opens a carrier to `__sandboxd-connect` in the server; called again after each cut. Throws `ServerGone` if that has
   * no use anymore, anything else if it failed this time.
   */
  connect: () => Promise<FrameTransport>
  /** `KEY_BYTES` random bytes, made for this start of the server. It is sent in the stream alone. */
  key: Uint8Array
  /** Milliseconds without a carrier after which both ends give the server up. */
  leaseMs: number
}

/**
 * Berth's end of a stream to a sandboxd that was started with `--listen`. The stream goes on over a new carrier when one is
 * cut or silent: nothing is lost and nothing arrives twice. It ends when sandboxd does, or when no carrier has reached
 * that for the lease. sandboxd ends itself by then, so a stream that is lost has no server left.
 */
export class ResumableTransport implements FrameTransport {
  readonly #options: ResumableOptions
  readonly #times: StreamTimes
  readonly #id = Buffer.from(systemRandom.bytes(16)).toString('hex')
  #stream: ResumableStream | null = null
  #closed: (reason?: string) => void = () => {}
  #interruption: Interruption | null = null
  /** Whether that is for good, because the server has ended, or the lease has. */
  #isLost = false
  #carrier: FrameChannel | null = null
  #attempt = 0
  #isWelcome = false
  readonly #over = Promise.withResolvers<void>()

  constructor(options: ResumableOptions) {
    const { pingMs = 5_000, silenceMs = 15_000, leaseMs } = options
    this.#options = options
    this.#times = { pingMs, silenceMs, leaseMs }
  }

  get interruption(): string | null {
    if (this.#interruption === null) return null
    const { since, cause } = this.#interruption
    return this.#isLost || performance.now() - since >= SHORT_MS ? cause : null
  }

  /** Resolves when sandboxd has accepted the stream. Throws `ComputeError` if it does not within the lease. */
  async open({ data, drain, closed }: TransportHandlers): Promise<void> {
    this.#stream = new ResumableStream({ data, drain })
    this.#closed = closed
    await this.#reach(this.#stream, 'It is being started.')
    if (this.#isLost) throw new ComputeError(this.#interruption?.cause ?? '')
  }

  write(bytes: Uint8Array): number {
    return this.#isLost ? bytes.length : (this.#stream?.write(bytes) ?? 0)
  }

  terminate(): void {
    this.#lose('It was closed.')
  }

  /** Tries until a carrier has joined, or the stream is lost. */
  async #reach(stream: ResumableStream, cut: string, silentMs = 0): Promise<void> {
    const began = performance.now()
    const since = began - silentMs
    let cause = cut
    let pauseMs = FIRST_PAUSE_MS
    while (!this.#isLost) {
      const leftMs = began + this.#times.leaseMs - performance.now()
      if (leftMs <= 0) {
        this.#lose(`It could not be reached for ${this.#times.leaseMs / 1000} seconds: ${cause}`)
        return
      }
      this.#interruption = { since, cause }
      try {
        await this.#join(stream, Math.min(this.#times.silenceMs, leftMs))
        return
      } catch (error) {
        cause = messageOf(error)
        if (error instanceof ServerGone) this.#lose(cause)
      }
      await within(pauseMs, this.#over.promise, null)
      pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS)
    }
  }

  /** Opens one carrier and joins the stream over it; waits at most `limitMs` for each. */
  async #join(stream: ResumableStream, limitMs: number): Promise<void> {
    const { silenceMs } = this.#times
    const transport = await this.#connect(limitMs)
    const joined = Promise.withResolvers<void>()
    const ended = once(() => {
      joined.reject(new Error('The connection to the server was closed.'))
      if (this.#carrier === carrier) this.#cut(stream, 'The connection to the server was cut.')
    })
    const carrier: FrameChannel = new FrameChannel({
      transport,
      maxPayload: MAX_CARRIED,
      streamed: CARRIED.data,
      onFrame: (kind, _, payload) => {
        if (this.#carrier === carrier) {
          if (kind === CARRIED.end) this.#lose('sandboxd ended.')
          else stream.receive(kind, payload)
          return
        }
        const count = this.#welcomed(stream, kind, payload)
        if (this.#isLost) return
        this.#carrier = carrier
        stream.attach(carrier, count, this.#times, () =>
          this.#cut(stream, `The server has not responded for ${silenceMs / 1000} seconds.`, silenceMs),
        )
        this.#interruption = null
        joined.resolve()
      },
      onDrained: () => {
        if (this.#carrier === carrier) stream.pump()
      },
      onClosed: ended,
      onBroken: (error) => {
        joined.reject(error)
        if (this.#carrier === carrier) this.#cut(stream, `The server broke the protocol: ${messageOf(error)}`)
      },
    })
    joined.promise.catch(() => {})
    try {
      await carrier.open()
      carrier.send(CARRIED.join, 0, this.#request(stream))
      const late = within(limitMs, joined.promise, 'late' as const)
      const outcome = await Promise.race([late, this.#over.promise])
      if (outcome === 'late') throw new Error('The server did not respond.')
    } finally {
      if (this.#carrier !== carrier) carrier.close()
    }
  }

  async #connect(limitMs: number): Promise<FrameTransport> {
    const connecting = this.#options.connect()
    const over = this.#over.promise.then(() => null)
    const transport = await within(limitMs, Promise.race([connecting, over]), null)
    if (transport !== null) return transport
    const discard = (late: FrameTransport) =>
      late.open({ data() {}, drain() {}, closed() {} }).then(() => late.terminate())
    void connecting.then(discard).catch(() => {})
    throw new Error('The engine did not open a connection to the server.')
  }

  #request(stream: ResumableStream): Uint8Array {
    const { key } = this.#options
    this.#attempt += 1
    return sign(key, 'join', {
      ...{ stream: this.#id, attempt: this.#attempt, received: stream.received, ...this.#times },
      ...(!this.#isWelcome && { key: Buffer.from(key).toString('base64') }),
    })
  }

  /** Returns how many bytes sandboxd has received. Throws if it does not agree, or is another program. */
  #welcomed(stream: ResumableStream, kind: number, payload: Uint8Array): number {
    if (kind === CARRIED.refusal) {
      const sentence = Buffer.from(payload.subarray(0, MAX_SENTENCE)).toString()
      // Anyone can refuse, so one that has agreed before is tried again.
      throw this.#isWelcome ? new ComputeError(sentence) : new ServerGone(sentence)
    }
    const welcome = kind === CARRIED.welcome ? verify(this.#options.key, 'welcome', payload) : null
    const { attempt, received } = (welcome ?? {}) as Partial<Welcome>
    if (attempt !== this.#attempt)
      throw new ProtocolError('what responds in the server does not have its key')
    this.#isWelcome = true
    if (!stream.canResume(received)) throw new ServerGone('The server has lost bytes that berth has sent.')
    return received
  }

  /** Replaces a carrier that has ended, or that was silent for so long. */
  #cut(stream: ResumableStream, cause: string, silentMs = 0): void {
    const carrier = this.#carrier
    if (carrier === null) return
    this.#carrier = null
    stream.detach()
    carrier.close()
    void this.#reach(stream, cause, silentMs)
  }

  #lose(cause: string): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#interruption = { since: performance.now(), cause }
    this.#over.resolve()
    this.#stream?.detach()
    this.#carrier?.close()
    this.#carrier = null
    this.#closed(cause)
  }
}
