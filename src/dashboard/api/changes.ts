import { type ReadonlySignal, signal } from '@preact/signals'
import { INSTANCE_CHANGE_TYPES } from '../../resources/changes/types.ts'
import type { PageContext, Session } from './session.ts'

/** A message of the live streams: an object as its GET gives it, or null if it is gone. */
export interface LiveChange {
  readonly type: string
  readonly id: string
  /** The server that it lies on, if it lies on one. */
  readonly server_id?: string
  readonly value: unknown
}

/** Whether the page receives changes: `lost` while it tries to connect again. */
type ConnectionState = 'connecting' | 'live' | 'lost'

type Listener = (change: LiveChange) => void

/** Milliseconds before the attempts to connect again: after the first ones, always the last. */
const RETRY_MS = [250, 500, 1_000, 2_000, 5_000] as const

/** The streams of the API and of the control API, each with a connection of its own. */
const API = '/changes'
const CONTROL = '/_berth/changes?bodies=false'

/** Types of changes that the stream of the control API has. The others are on that of the API. */
const CONTROL_TYPES: ReadonlySet<string> = new Set(INSTANCE_CHANGE_TYPES)

/** Types that both streams have. */
const SHARED_TYPES: ReadonlySet<string> = new Set(['account'])

/** The close code of a session that is over (docs/terminals.md). */
const SESSION_OVER = 4001

/**
 * Receives everything that changes on the instance, by one WebSocket for the API and, if the session may use it, one for
 * the control API. Nothing is replayed: after a gap, listeners are notified and load again.
 */
export class ChangeStream {
  readonly #paths: readonly string[]
  readonly #base: string
  readonly #session: Session
  readonly #live = new Set<string>()
  /** The paths whose first connection is open or has failed. */
  readonly #tried = new Set<string>()
  readonly #state = signal<ConnectionState>('connecting')
  readonly #listeners = new Map<string, Set<Listener>>()
  /** The functions that load again, each with the paths of its changes. */
  readonly #reloaders = new Map<() => void, readonly string[]>()
  #isStarted = false

  constructor(
    { base_url: baseUrl, is_admin: isAdmin }: Pick<PageContext, 'base_url' | 'is_admin'>,
    session: Session,
  ) {
    this.#session = session
    this.#base = baseUrl.replace(/^http/, 'ws')
    this.#paths = [API, ...(isAdmin ? [CONTROL] : [])]
  }

  /** Whether changes are received. */
  get state(): ReadonlySignal<ConnectionState> {
    return this.#state
  }

  /** Connects, and connects again whenever a connection is lost. */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    for (const path of this.#paths) this.#connect(path, 0)
  }

  /** Passes on changes that were recorded, in place of those of a connection; lists load then. */
  replay(changes: Iterable<LiveChange>): void {
    for (const change of changes) this.#pass(change)
    for (const path of this.#paths) {
      this.#live.add(path)
      this.#tried.add(path)
    }
    this.#state.value = 'live'
    for (const path of this.#paths) this.#reload(path)
  }

  #pass(change: LiveChange): void {
    for (const listener of this.#listeners.get(change.type) ?? []) listener(change)
  }

  /**
   * Calls `listener` with every change of a type.
   *
   * @returns a function that ends the subscription
   */
  subscribe(type: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(type) ?? new Set()
    this.#listeners.set(type, listeners.add(listener))
    return () => void listeners.delete(listener)
  }

  /** Reports whether the first connection for a type is still being made: it is neither open nor has failed. */
  isConnecting(type: string): boolean {
    return this.#pathsOf(type).some((path) => !this.#tried.has(path))
  }

  /**
   * Calls `reload` when changes may have been missed, and once the first connection is there or has failed.
   *
   * @param type the type of the changes; without it those of any
   * @returns a function that ends the subscription
   */
  onGap(reload: () => void, type?: string): () => void {
    this.#reloaders.set(reload, this.#pathsOf(type))
    return () => void this.#reloaders.delete(reload)
  }

  #connect(path: string, attempt: number): void {
    const socket = new WebSocket(`${this.#base}${path}`)
    let wasReady = false
    socket.onmessage = ({ data }) => {
      const change = JSON.parse(String(data)) as LiveChange
      if (change.type === 'ready') {
        wasReady = true
        this.#live.add(path)
        this.#tried.add(path)
        if (this.#live.size === this.#paths.length) this.#state.value = 'live'
        // Also the first time: lists that were opened before wait for it.
        this.#reload(path)
      } else {
        if (change.type === 'gap' || change.type === 'reset') this.#reload(path)
        this.#pass(change)
      }
    }
    socket.onclose = ({ code }) => {
      this.#live.delete(path)
      if (code === SESSION_OVER) return this.#session.leave()
      if (!wasReady) void this.#session.leaveIfOver()
      const isFirst = !this.#tried.has(path)
      this.#tried.add(path)
      this.#state.value = 'lost'
      if (isFirst) this.#reload(path)
      const wait = RETRY_MS[Math.min(wasReady ? 0 : attempt, RETRY_MS.length - 1)]
      setTimeout(() => this.#connect(path, wasReady ? 0 : attempt + 1), wait)
    }
  }

  /** Loads again what a connection reports, unless another connection that reports it too is still being made. */
  #reload(path: string): void {
    for (const [reload, paths] of [...this.#reloaders])
      if (paths.includes(path) && paths.every((one) => this.#tried.has(one))) reload()
  }

  #pathsOf(type?: string): readonly string[] {
    if (type === undefined || SHARED_TYPES.has(type)) return this.#paths
    return CONTROL_TYPES.has(type) && this.#paths.includes(CONTROL) ? [CONTROL] : [API]
  }
}
