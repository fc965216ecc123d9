import { isAddress } from '../../../../runtime/address.ts'
import {
  type HostPattern,
  matchesName,
  matchesPort,
  parseHostPattern,
} from '../../../../runtime/host-pattern.ts'
import type { NetworkFault } from '../../../sandbox.ts'
import { matchesAddress } from './policy.ts'

/** Milliseconds after which TCP sends a lost packet again, doubled each time (RFC 6298, section 2; Linux's minimum). */
const RESEND_MS = 200

/** Milliseconds after which TCP opens a connection again, doubled each time (RFC 6298, section 2). */
const REOPEN_MS = 1_000

/** Losses of one packet after which a connection breaks off. @bound program */
const MAX_LOSSES = 6

/** A network fault in effect. */
export class Disturbance {
  readonly fault: NetworkFault
  readonly #patterns: readonly HostPattern[] | null
  #state: number

  constructor(fault: NetworkFault) {
    this.fault = fault
    this.#patterns = fault.hosts?.map(parseHostPattern).filter((pattern) => pattern !== null) ?? null
    this.#state = fault.seed | 0
  }

  /** Reports whether it is for a place. @param port null for a name look-up */
  isFor(names: readonly string[], address: string | null, port: number | null): boolean {
    if (this.#patterns === null) return true
    return this.#patterns.some((pattern) => {
      if (port !== null && !matchesPort(pattern, port)) return false
      if (names.some((name) => matchesName(pattern, name))) return true
      return address !== null && isAddress(address) && matchesAddress(pattern, address)
    })
  }

  /** Whether it is the kind that lets nothing pass. */
  get blocks(): boolean {
    return this.fault.offline === true || this.fault.refused === true
  }

  /**
   * Returns the milliseconds by which the next packet is late; null if it is lost for good.
   *
   * @param what the packet's place in its connection, or a datagram, which nobody sends again
   */
  delay(what: 'opening' | 'data' | 'datagram'): number | null {
    const { latencyMs = 0, jitterMs = 0, loss = 0 } = this.fault
    let late = Math.max(0, latencyMs + (jitterMs === 0 ? 0 : (2 * this.#random() - 1) * jitterMs))
    let wait = what === 'opening' ? REOPEN_MS : RESEND_MS
    for (let losses = 0; loss > 0 && this.#random() < loss; wait *= 2) {
      losses += 1
      if (what === 'datagram' || losses === MAX_LOSSES) return null
      late += wait
    }
    return late
  }

  /** Returns a number from 0 to 1, by mulberry32: fast, and the same for the same seed. */
  #random(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
