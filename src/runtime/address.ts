import ipaddr from 'ipaddr.js'

/** Names that belong to a machine or a network, whatever they resolve to (RFC 6761, RFC 6762, RFC 8375). */
export const LOCAL_NAME = /(?:^|\.)(?:local|internal|localdomain|lan|home\.arpa)$/
export const LOCALHOST = /(?:^|\.)localhost$/

/** Addresses in public ranges that a cloud provider's host machine serves. */
const PROVIDER_ADDRESSES = new Set(['168.63.129.16'])

/** The kind of an address: `public`, `loopback`, or the name of its special range. */
type AddressKind = 'public' | 'loopback' | (string & {})

/** Reports whether a host is an address. IPv6 has no brackets here. */
export const isAddress = (host: string): boolean =>
  host.includes(':') || ipaddr.IPv4.isValidFourPartDecimal(host)

/**
 * Classifies an address by the special ranges of IANA's registries. An address of this machine leads to its own services,
 * so a public one is as loopback.
 *
 * @param own returns the addresses of this machine's interfaces
 */
export function addressKind(address: string, own: () => readonly string[]): AddressKind {
  if (!ipaddr.isValid(address)) return 'no address'
  // An IPv4 address in IPv6 notation is classified as IPv4.
  const plain = ipaddr.process(address)
  const range = plain.range()
  if (range !== 'unicast') return range
  if ('parts' in plain && isIsatap(plain.parts)) return 'of a tunnel'
  if (PROVIDER_ADDRESSES.has(plain.toString())) return 'of the cloud provider'
  // The library reports unicast for every address without a range of its own. Global unicast is 2000::/3 (RFC 4291,
  // 2.4).
  if ('parts' in plain && (plain.parts[0] ?? 0) >>> 13 !== 1) return 'not global'
  return own().some((one) => isSame(one, plain.toString())) ? 'loopback' : 'public'
}

const isSame = (address: string, plain: string): boolean =>
  ipaddr.isValid(address) && ipaddr.process(address).toString() === plain

/** Matches an interface id of ISATAP, which contains the IPv4 address of a tunnel (RFC 5214, 6.1). */
const isIsatap = ([, , , , owner = 0, marker = 0]: readonly number[]): boolean =>
  (owner & 0xfdff) === 0 && marker === 0x5efe
