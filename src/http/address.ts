import ipaddr from 'ipaddr.js'

/** Names that belong to a machine or a network, whatever they resolve to (RFC 6761, RFC 6762, RFC 8375). */
export const LOCAL_NAME = /(?:^|\.)(?:local|internal|localdomain|lan|home\.arpa)$/
export const LOCALHOST = /(?:^|\.)localhost$/

/** Public by their range, but served by the machine that a cloud provider runs underneath. */
const PROVIDER_ADDRESSES = new Set(['168.63.129.16'])

/** What an address is: `public`, `loopback`, or the name of the range that makes it neither. */
export type AddressKind = 'public' | 'loopback' | (string & {})

/** Whether a host is an address and no name; IPv6 without brackets. */
export const isAddress = (host: string): boolean =>
  host.includes(':') || ipaddr.IPv4.isValidFourPartDecimal(host)

/** Judges an address by the special ranges of IANA's registries. */
export function addressKind(address: string): AddressKind {
  if (!ipaddr.isValid(address)) return 'no address'
  // An IPv4 address written as an IPv6 one is judged as what it is.
  const plain = ipaddr.process(address)
  const range = plain.range()
  if (range !== 'unicast') return range
  if ('parts' in plain && isIsatap(plain.parts)) return 'of a tunnel'
  if (PROVIDER_ADDRESSES.has(plain.toString())) return 'of the cloud provider'
  // The library calls unicast whatever has no range of its own; global unicast is 2000::/3 (RFC 4291, 2.4).
  return !('parts' in plain) || (plain.parts[0] ?? 0) >>> 13 === 1 ? 'public' : 'not global'
}

/** An interface id of ISATAP, which carries an IPv4 address that a tunnel leads to (RFC 5214, 6.1). */
const isIsatap = ([, , , , owner = 0, marker = 0]: readonly number[]): boolean =>
  (owner & 0xfdff) === 0 && marker === 0x5efe
