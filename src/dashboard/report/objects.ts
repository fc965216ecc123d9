import type { RecordedObject } from '../../testing/testing.ts'
import type { LiveChange } from '../api/changes.ts'

/** The changes of objects that were recorded. Those that were removed since are still known. */
export class RecordedObjects {
  readonly #changes: readonly RecordedObject[]
  /** The last value of each object, by type and id. */
  readonly #last = new Map<string, unknown>()
  /** The value of each object before the change that is replayed. */
  readonly #before = new Map<string, unknown>()
  #now = 0

  constructor(changes: readonly unknown[]) {
    this.#changes = changes as readonly RecordedObject[]
    for (const { type, id, value } of this.#changes) this.#last.set(`${type} ${id}`, value)
  }

  /** The time of the change that is replayed, in milliseconds since 1970. */
  get now(): number {
    return this.#now
  }

  /** Returns an object as it was before a change; undefined if it was not there. */
  before({ type, id }: LiveChange): unknown {
    return this.#before.get(`${type} ${id}`)
  }

  /** Returns the objects of a type that were there at the end, newest first. */
  list(type: RecordedObject['type']): unknown[] {
    const present = [...this.#last].filter(([key, value]) => key.startsWith(`${type} `) && value !== null)
    return present.map(([, value]) => value).reverse()
  }

  /** Iterates over all changes, oldest first. Each is replayed before the next is asked for. */
  *replay(): Generator<LiveChange, void> {
    for (const { at, type, id, server_id: serverId, value } of this.#changes) {
      this.#now = Date.parse(at)
      yield { type, id, ...(serverId === null ? {} : { server_id: serverId }), value }
      if (value !== null) this.#before.set(`${type} ${id}`, value)
    }
  }
}
