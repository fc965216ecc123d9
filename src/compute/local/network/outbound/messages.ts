import type { NetworkFault, OutboundSettings, RefusedDestination } from '../../../sandbox.ts'

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

/** A message to the relay. `server` is an id that is never used again. */
export type ToRelay =
  | {
      readonly kind: 'open'
      readonly server: number
      /** The server's id, for remedies. */
      readonly serverId: string
      readonly sockets: readonly RelayedSocket[]
      readonly settings: OutboundSettings
      /** The unix sockets at which berth takes connections of servers to ports of its own, by port. */
      readonly socketsOfBerth: Readonly<Record<number, string>>
    }
  | { readonly kind: 'settings'; readonly server: number; readonly settings: OutboundSettings }
  | { readonly kind: 'fault'; readonly server: number; readonly fault: NetworkFault | null }
  /** When it is confirmed, what was refused before has been reported. What is refused from then on is reported anew. */
  | { readonly kind: 'sync'; readonly server: number }
  | { readonly kind: 'close'; readonly server: number }

/** A message from the relay. `done` confirms that the oldest unconfirmed message to a server is in effect. */
export type FromRelay =
  | { readonly kind: 'done'; readonly server: number; readonly error: string | null }
  | ({ readonly kind: 'refused'; readonly server: number } & RefusedDestination)
  | { readonly kind: 'failed'; readonly error: string }
