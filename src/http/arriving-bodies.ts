import { BerthError } from '../errors.ts'
import { BODY_LIMIT } from './body.ts'

/** Bytes of bodies that one credential may have on their way at a time: berth keeps them until the last byte is there. */
export const ARRIVING_LIMIT = 8 * BODY_LIMIT

/** Bounds what berth keeps of bodies that have not arrived whole, separately for each credential. */
export class ArrivingBodies {
  readonly #bytes = new Map<string, number>()

  /** Begins to count a body. Dispose of the result when the body has arrived, or is given up. */
  begin(credentialId: string): ArrivingBody {
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
      [Symbol.dispose]: () => change(-own),
    }
  }
}

/** A body that arrives. */
export interface ArrivingBody extends Disposable {
  /** Counts further bytes of it. @throws BerthError 503 over the limit */
  add(bytes: number): void
}

const tooMuchAtOnce = (): BerthError =>
  new BerthError(
    'service_unavailable',
    `Request bodies of this credential with ${ARRIVING_LIMIT} bytes are on their way already. Wait for the responses, then send this request again.`,
  )
