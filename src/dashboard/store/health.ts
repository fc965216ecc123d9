import { type ReadonlySignal, signal } from '@preact/signals'
import type { ResponseOf } from '../../route-client/client.ts'
import type { ChangeStream } from '../api/changes.ts'
import type { ApiClient } from '../api/client.ts'
import type { PageClock } from './clock.ts'

/** The version, limits and isolation of the instance. */
type InstanceHealth = ResponseOf<'control.health'>

/**
 * What is known of the instance as a whole: read at first, and whenever the page has connected, since another one may
 * run then, or the same one with another state.
 */
export class Health {
  readonly #value = signal<InstanceHealth | null>(null)

  readonly #isRead = signal(false)

  /** Whether it was read, or could not be. */
  get isRead(): ReadonlySignal<boolean> {
    return this.#isRead
  }

  /** Null until it is known. */
  get value(): ReadonlySignal<InstanceHealth | null> {
    return this.#value
  }

  /** Reads it now and at each connection, and sets the page's clock by it. */
  start(api: ApiClient, changes: ChangeStream, clock: PageClock): void {
    let reads = 0
    const read = async (): Promise<void> => {
      const number = ++reads
      const steering = clock.steering.peek()
      try {
        const health = await api.call('control.health')
        if (number === reads) this.#value.value = health
        // A change of the clock that arrived meanwhile is newer.
        if (clock.steering.peek() === steering) clock.set(health.clock)
      } catch {
        // Without it the page shows everything else.
      }
      this.#isRead.value = true
    }
    void read()
    changes.onGap(() => void read())
    // The journal was emptied if all requests are gone.
    changes.subscribe('request', ({ id }) => id === '*' && void read())
  }
}
