import { BerthError } from '../errors.ts'
import { BODY_LIMIT, type BodyCounter } from './body.ts'

/**
 * Bytes of bodies that one credential may have on their way at a time: berth keeps them until the last byte is there.
 * @bound client
 */
const ARRIVING_LIMIT = 8 * BODY_LIMIT

/** Milliseconds without a byte after which a body is given up. */
const SILENCE_MS = 30_000

/** How many times in that while silent bodies are looked for. */
const LOOKS = 6

/** A request whose body arrives, and when berth last heard of it, by `performance.now()`. */
interface Arrival {
  readonly request: Request
  heardAt: number
}

/**
 * Bounds what berth keeps of bodies that have not arrived whole, separately for each credential, and for how long it waits
 * for their next byte.
 */
export class ArrivingBodies {
  readonly #bytes = new Map<string, number>()
  readonly #arrivals = new Set<Arrival>()
  readonly #expire: (request: Request) => void
  readonly #silenceMs: number
  #look: Timer | null = null

  /**
   * @param expire closes the connection of a request, which ends the reading of its body
   * @param silenceMs milliseconds without a byte after which a body is given up
   */
  constructor(expire: (request: Request) => void, silenceMs = SILENCE_MS) {
    this.#expire = expire
    this.#silenceMs = silenceMs
  }

  /** Begins to count a body. Dispose of the result when the body has arrived, or is given up. */
  begin(credentialId: string, request: Request): ArrivingBody {
    const arrival: Arrival = { request, heardAt: performance.now() }
    this.#arrivals.add(arrival)
    if (this.#look === null)
      this.#look = setInterval(() => this.#endSilent(), this.#silenceMs / LOOKS).unref()
    let own = 0
    const change = (bytes: number): void => {
      own += bytes
      const all = (this.#bytes.get(credentialId) ?? 0) + bytes
      if (all > 0) this.#bytes.set(credentialId, all)
      else this.#bytes.delete(credentialId)
    }
    return {
      add: (bytes) => {
        if ((this.#bytes.get(credentialId) ?? 0) + bytes > ARRIVING_LIMIT) throw tooMuchAtOnce()
        change(bytes)
      },
      heard() {
        arrival.heardAt = performance.now()
      },
      [Symbol.dispose]: () => {
        this.#arrivals.delete(arrival)
        change(-own)
      },
    }
  }

  #endSilent(): void {
    if (this.#arrivals.size === 0) {
      if (this.#look !== null) clearInterval(this.#look)
      this.#look = null
    }
    const now = performance.now()
    for (const arrival of this.#arrivals) {
      if (now - arrival.heardAt < this.#silenceMs) continue
      this.#arrivals.delete(arrival)
      this.#expire(arrival.request)
    }
  }
}

/** A body that arrives. */
interface ArrivingBody extends BodyCounter, Disposable {
  /** Counts further bytes of it. @throws BerthError 503 over the limit */
  add(bytes: number): void
}

const tooMuchAtOnce = (): BerthError =>
  new BerthError(
    'service_unavailable',
    `Request bodies of this credential with ${ARRIVING_LIMIT} bytes are on their way already. Wait for the responses, then send this request again.`,
  )
