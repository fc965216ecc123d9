import type { OutboundSettings, Refusal } from './policy.ts'

/** A listening TCP socket, or a bound UDP socket, that was made inside a server's network. The relay closes it. */
export interface RelayedSocket {
  readonly fd: number
  /**
   * What arrives there: connections that were redirected, or requests to an HTTP proxy (`outbound`, TCP); name
   * look-ups (`dns`, UDP); connections to a service of this machine (`machine`, TCP).
   */
  readonly purpose: 'outbound' | 'dns' | 'machine'
  /** The port of this machine's loopback, for `machine`. */
  readonly port?: number
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

/** A refused destination. */
export interface RefusedDestination extends Refusal {
  /** A name or an address, with its port if it was a connection, such as `10.0.0.5:5432`. */
  readonly destination: string
}

/** A message to the relay. `server` is an id that is never used again. */
export type ToRelay =
  | {
      readonly kind: 'open'
      readonly server: number
      /** The server's id, for remedies. */
      readonly serverId: string
      readonly sockets: readonly RelayedSocket[]
      readonly settings: OutboundSettings
    }
  | { readonly kind: 'settings'; readonly server: number; readonly settings: OutboundSettings }
  | { readonly kind: 'fault'; readonly server: number; readonly fault: NetworkFault | null }
  | { readonly kind: 'close'; readonly server: number }

/** A message from the relay. `done` confirms that the oldest unconfirmed message to a server is in effect. */
export type FromRelay =
  | { readonly kind: 'done'; readonly server: number; readonly error: string | null }
  | ({ readonly kind: 'refused'; readonly server: number } & RefusedDestination)
  | { readonly kind: 'failed'; readonly error: string }
