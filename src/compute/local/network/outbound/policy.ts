import ipaddr from 'ipaddr.js'
import type { OutboundMode } from '../../../../config/values.ts'
import { addressKind, isAddress, LOCALHOST } from '../../../../runtime/address.ts'
import {
  type HostPattern,
  matchesName,
  matchesPort,
  parseHostPattern,
} from '../../../../runtime/host-pattern.ts'
import type { InterfaceAddresses } from '../../../../system/interface-addresses.ts'
import type { OutboundSettings, RefusedDestination } from '../../../sandbox.ts'

/** A place that a server wants to connect to. */
export interface OutboundDestination {
  /** The address that would be dialled. */
  readonly address: string
  readonly port: number
  /** The names by which the server knows the address, in lower case. */
  readonly names: readonly string[]
}

/** Why a destination is refused, and what a person can do about it. */
export type OutboundRefusal = Omit<RefusedDestination, 'destination'>

/** Ranges to which no mode lets a connection through: they are the server's own, or no place. */
const NEVER: ReadonlySet<string> = new Set([
  'loopback',
  'unspecified',
  'multicast',
  'broadcast',
  'no address',
])

const OWN_REMEDY =
  'Hand a service of this machine into servers with "berth serve --server-hosts PORT"; it is then at 127.0.0.1:PORT inside.'

const NOWHERE_REMEDY = 'Use the name or the address of one machine. No option allows this destination.'

/**
 * Decides which destinations a server reaches. The decision is about the address that is dialled, whatever name led to
 * it, so a name that resolves to another address the second time gains nothing (DNS rebinding).
 */
export class OutboundPolicy {
  readonly mode: OutboundMode
  readonly #patterns: readonly HostPattern[]
  readonly #serverId: string
  readonly #own: InterfaceAddresses

  /**
   * @param serverId the server's id, for remedies
   * @param own returns the machine's own addresses
   */
  constructor({ mode, hosts }: OutboundSettings, serverId: string, own: InterfaceAddresses) {
    this.mode = mode
    this.#serverId = serverId
    this.#patterns = hosts.map(parseHostPattern).filter((pattern) => pattern !== null)
    this.#own = own
  }

  /** Returns why the server may not learn a name's addresses; null if it may. */
  judgeName(name: string): OutboundRefusal | null {
    if (this.mode === 'none') return this.#noWayOut()
    if (this.mode !== 'list' || this.#patterns.some((pattern) => matchesName(pattern, name))) return null
    return { reason: 'the name is not in the list of outbound hosts', remedy: this.#allow(name) }
  }

  /** Returns why a connection is refused; null if it is allowed. */
  judge({ address, port, names }: OutboundDestination): OutboundRefusal | null {
    const kind = isAddress(address) ? addressKind(address, () => []) : 'no address'
    if (NEVER.has(kind)) {
      const remedy = kind === 'loopback' ? OWN_REMEDY : NOWHERE_REMEDY
      return { reason: `the address is not reachable from a server (${kind})`, remedy }
    }
    if (this.mode === 'none') return this.#noWayOut()
    const ip = ipaddr.process(address)
    const listed = this.#patterns.filter((pattern) => matchesPort(pattern, port))
    if (listed.some((pattern) => matchesAddress(pattern, address))) return null
    const place = ip.kind() === 'ipv6' ? `[${ip.toString()}]:${port}` : `${ip.toString()}:${port}`
    if (this.isOwn(address)) {
      return { reason: 'the address is one of this machine itself', remedy: OWN_REMEDY }
    }
    if (this.mode === 'open') return null
    if (kind !== 'public')
      return { reason: `the address is not public (${kind})`, remedy: this.#allow(place) }
    if (this.mode === 'public') return null
    if (listed.some((pattern) => names.some((name) => matchesName(pattern, name)))) return null
    const [name] = names
    return {
      reason: 'it is not in the list of outbound hosts',
      remedy: this.#allow(name === undefined ? place : `${name}:${port}`),
    }
  }

  /** Reports whether an address is one of this machine's own, or may be one since the kernel does not tell these now. */
  isOwn(address: string): boolean {
    if (!isAddress(address)) return false
    try {
      return this.#own().includes(ipaddr.process(address).toString())
    } catch {
      return true
    }
  }

  #allow(host: string): string {
    // A program chooses its names, and people copy commands to their shell.
    if (parseHostPattern(host) === null) return NOWHERE_REMEDY
    return `Allow it with "berth servers network ${this.#serverId} --add-host ${host}", or for all servers with "berth serve --outbound-hosts ${host}".`
  }

  #noWayOut(): OutboundRefusal {
    const remedy = `Allow it with "berth servers network ${this.#serverId} --outbound public", or for all servers with "berth serve --outbound public".`
    return { reason: 'the server has no way out (outbound none)', remedy }
  }
}

/** Reports whether a pattern is for an address, at whatever port. */
export function matchesAddress({ host }: HostPattern, address: string): boolean {
  if (host.kind !== 'addresses') return false
  const ip = ipaddr.process(address)
  const network = ipaddr.process(host.address)
  if (ip.kind() !== network.kind()) return false
  const bits = host.bits ?? (network.kind() === 'ipv4' ? 32 : 128)
  // An IPv4 network in IPv6 notation has the 96 bits of its prefix.
  const mapped = network.kind() === 'ipv4' && host.address.includes(':') && host.bits !== null
  return ip.match(network as ipaddr.IPv4 & ipaddr.IPv6, mapped ? Math.max(0, bits - 96) : bits)
}

/** Reports whether a name is the server's own loopback (RFC 6761, section 6.3). */
export const isLoopbackName = (name: string): boolean => LOCALHOST.test(name)
