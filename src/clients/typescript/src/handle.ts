import { changesOf } from './changes.js'
import { NotFoundError } from './errors.js'
import type { Transport } from './transport.js'

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

  /** The id of the object. */
  abstract readonly id: string

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
   * Reads the object anew with each of its changes, until it has settled. Nothing is asked repeatedly.
   *
   * @param isSettled whether the object, as it is now, has
   * @returns whether it has, before the time was over
   * @throws NotFoundError if it is deleted meanwhile
   */
  protected async settle(isSettled: () => boolean, { timeoutMs, signal }: WaitOptions): Promise<boolean> {
    const timeout = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
    const signals = [signal, timeout].filter((one) => one !== undefined)
    const either = signals.length > 0 ? AbortSignal.any(signals) : undefined
    try {
      for await (const change of changesOf(this.transport, either)) {
        // The variables of a project have its id, too: what has changed is read, not taken.
        if ('id' in change && change.id !== this.id) continue
        await this.refresh(either)
        if (isSettled()) return true
      }
    } catch (error) {
      if (!timeout?.aborted || signal?.aborted) throw error
    }
    return false
  }
}

/** Waits for a deletion, of which it is no error that it happened already. */
export async function gone(deletion: Promise<void>): Promise<void> {
  await deletion.catch((error: unknown) => {
    if (!(error instanceof NotFoundError)) throw error
  })
}
