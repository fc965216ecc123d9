import { type ReadonlySignal, signal } from '@preact/signals'
import type { ResponseOf } from '../../client/client.ts'
import type { Changes } from '../api/changes.ts'
import type { ApiClient } from '../api/client.ts'
import type { Clock } from './clock.ts'

/** What runs, and what holds on its machine. */
export type InstanceHealth = ResponseOf<'control.health'>

/** What is known of the instance as a whole: read whenever the page has connected, since another one may run then. */
export class Health {
  readonly #value = signal<InstanceHealth | null>(null)

  /** Null until it is known. */
  get value(): ReadonlySignal<InstanceHealth | null> {
    return this.#value
  }

  /** Reads it at each connection, and sets the page's clock by it. */
  start(api: ApiClient, changes: Changes, clock: Clock): void {
    changes.onGap(() => {
      api.call('control.health').then(
        (health) => {
          this.#value.value = health
          clock.set(health.clock)
        },
        // The page that cannot read it shows what else it knows.
        () => {},
      )
    })
  }
}
