import { computed, type ReadonlySignal, signal } from '@preact/signals'
import type { ChangeStream, LiveChange } from '../api/changes.ts'

/** How far a collection is loaded. A failure keeps what was there before. */
export type LoadState = 'idle' | 'loading' | 'ready' | Error

/** What is loaded when it is first shown. */
export interface Loadable<Value> {
  readonly list: ReadonlySignal<readonly Value[]>
  readonly state: ReadonlySignal<LoadState>
  open(): Loadable<Value>
  load(): Promise<void>
}

/** How a collection is loaded and kept up to date. */
interface CollectionOptions<Value> {
  /** Type of its changes on the live stream; undefined for a collection without. */
  type?: string
  load: () => Promise<readonly Value[]>
  idOf: (value: Value) => string
  /** Whether a change is of an object that belongs to it; by default each of its type is. */
  accepts?: (change: LiveChange) => boolean
  /** The order of its list; by default that of the response, with new objects first. */
  compare?: (a: Value, b: Value) => number
}

/** A list of objects: loaded when it is first shown, then kept up to date by the live stream. */
export class Collection<Value> implements Loadable<Value> {
  readonly #options: CollectionOptions<Value>
  readonly #changes: ChangeStream
  readonly #byId = signal<ReadonlyMap<string, Value>>(new Map())
  readonly #state = signal<LoadState>('idle')
  /** Changes that arrived during a load, which its response may not have. */
  #heard: LiveChange[] | null = null

  /** All objects, in order. Does not load them: see `open`. */
  readonly list: ReadonlySignal<readonly Value[]>

  constructor(changes: ChangeStream, options: CollectionOptions<Value>) {
    this.#options = options
    this.#changes = changes
    this.list = computed(() => {
      const values = [...this.#byId.value.values()]
      return options.compare ? values.sort(options.compare) : values
    })
    if (options.type === undefined) return
    const { accepts = () => true } = options
    changes.subscribe(options.type, (change) => {
      if (this.#state.peek() === 'idle' || !accepts(change)) return
      this.#heard?.push(change)
      this.#byId.value = this.#with(this.#byId.peek(), change)
    })
    changes.onGap(() => {
      if (this.#state.peek() !== 'idle') void this.load()
    }, options.type)
  }

  /** How far it is loaded. */
  get state(): ReadonlySignal<LoadState> {
    return this.#state
  }

  /** Loads it if nothing has yet. Components call it before they read. */
  open(): this {
    if (this.#state.peek() !== 'idle') return this
    // The first connection loads it: an earlier load would have to be repeated.
    if (this.#options.type !== undefined && this.#changes.isConnecting(this.#options.type))
      this.#state.value = 'loading'
    else void this.load()
    return this
  }

  /** Returns an object by its id. */
  get(id: string): Value | undefined {
    return this.#byId.value.get(id)
  }

  /**
   * Adds an object that a response gave, so that it is there at once. A known one stays unchanged: what the live
   * stream reported may be newer than the response.
   */
  add(value: Value): void {
    const id = this.#options.idOf(value)
    if (!this.#byId.peek().has(id)) this.#byId.value = this.#with(this.#byId.peek(), { type: '', id, value })
  }

  /** Removes an object. */
  remove(id: string): void {
    this.#byId.value = this.#with(this.#byId.peek(), { type: '', id, value: null })
  }

  /** Loads it again. */
  async load(): Promise<void> {
    const heard: LiveChange[] = []
    this.#heard = heard
    if (this.#state.peek() !== 'ready') this.#state.value = 'loading'
    try {
      const values = await this.#options.load()
      if (this.#heard !== heard) return
      const loaded = new Map(values.map((value) => [this.#options.idOf(value), value]))
      this.#byId.value = heard.reduce<ReadonlyMap<string, Value>>(
        (all, change) => this.#with(all, change),
        loaded,
      )
      this.#state.value = 'ready'
    } catch (error) {
      if (this.#heard !== heard) return
      this.#state.value = error instanceof Error ? error : new Error(String(error))
    }
    this.#heard = null
  }

  #with(all: ReadonlyMap<string, Value>, { id, value }: LiveChange): ReadonlyMap<string, Value> {
    if (value === null) {
      if (!all.has(id)) return all
      const rest = new Map(all)
      rest.delete(id)
      return rest
    }
    // An object that is there keeps its place.
    return all.has(id) ? new Map(all).set(id, value as Value) : new Map([[id, value as Value], ...all])
  }
}
