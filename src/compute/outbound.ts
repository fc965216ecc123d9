import type { OutboundMode } from '../config/values.ts'

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
}
