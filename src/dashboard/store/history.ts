import { type ReadonlySignal, signal } from '@preact/signals'
import type { ChangeStream, LiveChange } from '../api/changes.ts'
import type { Loadable, LoadState } from './collection.ts'

/** How a history is loaded and kept up to date. */
interface HistoryOptions<Value> {
  /** Type of its messages on the live stream. */
  type: string
  /** Loads at most `limit` values, the newest first. */
  load: (limit: number) => Promise<readonly Value[]>
  idOf: (value: Value) => string
  /** Most values that are kept; the oldest are dropped. */
  most: number
}

/** Values that are loaded at first, so that a page is there at once: a person asks for older ones. */
const FIRST = 100

/** Milliseconds in which messages are gathered before the list changes: thousands may arrive in a second. */
const GATHER_MS = 100

/** The newest requests, events or deliveries. Loaded when first shown, then fed by the live stream. */
export class History<Value> implements Loadable<Value> {
  readonly #options: HistoryOptions<Value>
  readonly #changes: ChangeStream
  readonly #list = signal<readonly Value[]>([])
  readonly #state = signal<LoadState>('idle')
  readonly #hasOlder = signal(false)
  #limit = FIRST
  /** By id, the oldest first. */
  #byId = new Map<string, Value>()
  #waiting: LiveChange[] = []
  #isGathering = false
  /** The load that is under way. Messages wait for it, since its response may not have them. */
  #loading: object | null = null

  constructor(changes: ChangeStream, options: HistoryOptions<Value>) {
    this.#options = options
    this.#changes = changes
    changes.subscribe(options.type, (change) => {
      if (this.#state.peek() === 'idle') return
      this.#waiting.push(change)
      if (this.#waiting.length > 2 * options.most) this.#waiting = this.#waiting.slice(-options.most)
      this.#gather()
    })
    changes.onGap(() => {
      if (this.#state.peek() !== 'idle') void this.load()
    }, options.type)
  }

  /** All values, the newest first. Does not load them: see `open`. */
  get list(): ReadonlySignal<readonly Value[]> {
    return this.#list
  }

  /** How far it is loaded. */
  get state(): ReadonlySignal<LoadState> {
    return this.#state
  }

  /** Whether there may be older values than those that were loaded: see `loadOlder`. */
  get hasOlder(): ReadonlySignal<boolean> {
    return this.#hasOlder
  }

  /** Loads all values that berth keeps, up to as many as the page keeps. */
  loadOlder(): Promise<void> {
    this.#limit = this.#options.most
    return this.load()
  }

  /** Loads it if nothing has yet. Components call it before they read. */
  open(): this {
    if (this.#state.peek() !== 'idle') return this
    // The first connection loads it: an earlier load would have to be repeated.
    if (this.#changes.isConnecting(this.#options.type)) this.#state.value = 'loading'
    else void this.load()
    return this
  }

  /** Returns a value by its id. Components that read it are drawn again when the list changes. */
  get(id: string): Value | undefined {
    return this.#list.value && this.#byId.get(id)
  }

  /** Forgets all values. */
  clear(): void {
    this.#waiting = []
    this.#byId.clear()
    this.#show()
  }

  /** Loads it again. */
  async load(): Promise<void> {
    const loading = {}
    this.#loading = loading
    if (this.#state.peek() !== 'ready') this.#state.value = 'loading'
    try {
      const values = await this.#options.load(this.#limit)
      if (this.#loading !== loading) return
      this.#byId = new Map([...values].reverse().map((value) => [this.#options.idOf(value), value]))
      this.#hasOlder.value = values.length === this.#limit && this.#limit < this.#options.most
      this.#state.value = 'ready'
    } catch (error) {
      if (this.#loading !== loading) return
      this.#state.value = error instanceof Error ? error : new Error(String(error))
    }
    this.#loading = null
    this.#apply()
  }

  #gather(): void {
    if (this.#isGathering) return
    this.#isGathering = true
    setTimeout(() => {
      this.#isGathering = false
      if (this.#loading === null) this.#apply()
    }, GATHER_MS)
  }

  #apply(): void {
    for (const { id, value } of this.#waiting) {
      // All were forgotten, by the journal's clear.
      if (id === '*') this.#byId.clear()
      else if (value === null) this.#byId.delete(id)
      // One that is there keeps its place.
      else this.#byId.set(id, value as Value)
    }
    this.#waiting = []
    this.#show()
  }

  #show(): void {
    let surplus = this.#byId.size - this.#options.most
    for (const id of this.#byId.keys()) {
      if (surplus <= 0) break
      this.#byId.delete(id)
      surplus -= 1
    }
    this.#list.value = [...this.#byId.values()].reverse()
  }
}
