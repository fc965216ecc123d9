import type { OutboundMode } from '../config/values.ts'
import { OncePerPeriod } from '../runtime/once-per-period.ts'

/** What a server with a network of its own may reach. */
export interface OutboundSettings {
  readonly mode: OutboundMode
  /** Host patterns: what `list` allows, and what `public` allows in addition to the internet. */
  readonly hosts: readonly string[]
}

/** A refused destination. */
export interface RefusedDestination {
  /** A name or an address, with its port if it was a connection, such as `10.0.0.5:5432`. */
  readonly destination: string
  /** Why it is refused, a sentence without its end. */
  readonly reason: string
  /** What a person can do about it, in sentences. */
  readonly remedy: string
}

/** Disturbs what passes between a server and the outside. */
export interface NetworkFault {
  /** Nothing passes: names are not resolved, connections break off. */
  readonly offline?: boolean
  /** The names do not exist, and connections to them are refused. */
  readonly refused?: boolean
  /** Milliseconds by which responses arrive later, those to a connection's opening included. */
  readonly latencyMs?: number
  /** Milliseconds by which that varies, up and down. */
  readonly jitterMs?: number
  /** Share of the packets that are lost, 0 to 1. */
  readonly loss?: number
  /** Host patterns; the fault is for these. Without them it is for everything outside. */
  readonly hosts?: readonly string[]
  /** The same seed makes the same choices for the same sequence of packets. */
  readonly seed: number
}

/** Controls what leaves a server's own network. */
export interface OutboundControl {
  /** Changes what the server may reach; resolves when that is in effect, for its open connections too. */
  apply(settings: OutboundSettings): Promise<void>

  /** Begins a fault in place of another, or ends it with null; resolves when that is in effect. */
  disturb(fault: NetworkFault | null): Promise<void>

  /** The destinations that were refused since the last change of the settings, the newest last, 100 at most. */
  readonly refused: readonly RefusedDestination[]

  /**
   * Calls `listener` for each refused destination, at most ten times a second for each and 200 times a second.
   *
   * @returns a function that unsubscribes
   */
  subscribe(listener: (refused: RefusedDestination) => void): () => void

  /** Resolves when the listeners have been called for everything that was refused before. */
  reported(): Promise<void>
}

/** Destinations that are collected for one command, or noted in one log; a program can try any number. */
const MOST_NOTED = 20

/** Collects what a server is refused until `end`, each destination once and 20 of them. */
export class RefusalCollector implements Disposable {
  readonly #control: OutboundControl | null
  readonly #refused: RefusedDestination[] = []
  readonly #unsubscribe: () => void

  /**
   * @param control null for a server that is refused nothing
   * @param onRefused called for each destination
   */
  constructor(control: OutboundControl | null, onRefused: (refused: RefusedDestination) => void = () => {}) {
    this.#control = control
    const noted = new OncePerPeriod(Number.POSITIVE_INFINITY, MOST_NOTED)
    const subscribe = control?.subscribe((refused) => {
      if (!noted.admits(refused.destination)) return
      this.#refused.push(refused)
      onRefused(refused)
    })
    this.#unsubscribe = subscribe ?? (() => {})
  }

  /**
   * Ends, and returns what was refused.
   *
   * @param complete whether to wait for what was refused a moment ago
   */
  async end(complete: boolean): Promise<RefusedDestination[]> {
    if (complete) await this.#control?.reported()
    this[Symbol.dispose]()
    return this.#refused
  }

  [Symbol.dispose](): void {
    this.#unsubscribe()
  }
}

/** Returns a refusal as a sentence for a person, with its remedy. */
export const describeRefusal = ({ destination, reason, remedy }: RefusedDestination): string =>
  `berth refused the server's connection to ${destination}: ${reason}. ${remedy}`
