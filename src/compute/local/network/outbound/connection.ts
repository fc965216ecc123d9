import type { Destination } from './policy.ts'
import type { Tunnel } from './tunnel.ts'

/** A connection that a server has opened, and what is known about it. */
export interface Connection {
  tunnel: Tunnel
  /** Where it goes; null as long as that is not known. */
  destination: Destination | null
  /** Takes bytes, and null for the end, in place of the tunnel. */
  reader: ((bytes: Buffer | null) => void) | null
  /** Cuts it if the head of its request does not arrive. */
  timer: Timer | undefined
}
