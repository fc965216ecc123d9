import { NotFoundError } from './errors.js'
import { type Transport, withQuery } from './transport.js'

/** How long one request waits for an object to settle, in milliseconds. */
const WAIT_MS = 30_000

/** What a wait may be limited by. */
export interface WaitOptions {
  /** The longest wait in milliseconds; without end by default. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/**
 * An object of the API with the calls that belong to it. It has the fields of the object as they were when it was last read:
 * `refresh`, and every method that returns the object, read them anew.
 */
export abstract class Handle<Data extends object> {
  /** Sends the requests of this object. */
  protected readonly transport: Transport

  constructor(transport: Transport, data: Data) {
    this.transport = transport
    Object.defineProperty(this, 'transport', { enumerable: false })
    this.assign(data)
  }

  /** The path of the object. */
  protected abstract get path(): string
  /** Takes the object out of the body of its GET. */
  protected abstract unwrap(body: unknown): Data

  /** Reads the object anew. */
  async refresh(signal?: AbortSignal): Promise<this> {
    return this.assign(this.unwrap(await this.transport.json('GET', this.path, undefined, signal)))
  }

  /** Takes the fields of an object that the API returned. */
  protected assign(data: Data): this {
    for (const name of Object.keys(this)) if (!(name in data)) Reflect.deleteProperty(this, name)
    return Object.assign(this, data)
  }

  /**
   * Reads the object when it has settled. The API responds when that happens, so nothing is asked repeatedly.
   *
   * @param isSettled whether the object, as it is now, has
   * @returns whether it has, before the time was over
   */
  protected async settle(isSettled: () => boolean, { timeoutMs, signal }: WaitOptions): Promise<boolean> {
    const end = timeoutMs === undefined ? undefined : Date.now() + timeoutMs
    while (true) {
      const left = end === undefined ? WAIT_MS : Math.min(WAIT_MS, Math.max(0, end - Date.now()))
      const path = withQuery(this.path, { wait_ms: left })
      this.assign(this.unwrap(await this.transport.json('GET', path, undefined, signal)))
      if (isSettled()) return true
      if (left < WAIT_MS) return false
    }
  }
}

/** Waits for a deletion, of which it is no error that it happened already. */
export async function gone(deletion: Promise<void>): Promise<void> {
  await deletion.catch((error: unknown) => {
    if (!(error instanceof NotFoundError)) throw error
  })
}
