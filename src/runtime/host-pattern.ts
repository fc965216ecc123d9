/** Matches hosts by name or address, and their ports. */
export interface HostPattern {
  /** As it was given, such as `*.example.com:443`. */
  readonly text: string
  /** The one TCP port that it matches; null for all. */
  readonly port: number | null
  /** A name without a trailing dot, or the addresses that share the first bits of one; all bits if null. */
  readonly host:
    | { readonly kind: 'name'; readonly name: string; readonly withSubdomains: boolean }
    | { readonly kind: 'addresses'; readonly address: string; readonly bits: number | null }
}

/** The forms of a pattern, for messages. */
export const HOST_PATTERN_FORMS =
  'such as example.com:443, *.example.com, 10.0.0.5:5432, 10.0.0.0/8 or [fd00::1]:5432'

/** A label of a host name (RFC 1123, section 2.1), and the underscore that service names use. */
const NAME = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*$/

/**
 * Parses a pattern: a name, `*.` and a name for all names below it, an address, or a range of addresses, each with or
 * without a port. IPv6 with a port is in brackets.
 *
 * @returns null if the text is no pattern
 */
export function parseHostPattern(given: string): HostPattern | null {
  const text = given.trim().toLowerCase()
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^[\]:]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  // Without brackets, several colons are an IPv6 address and no port.
  const host = bracketed ?? plain ?? text
  const port = digits === undefined ? null : Number(digits)
  if (port !== null && (port < 1 || port > 65_535)) return null
  const [address = '', length, ...more] = host.split('/')
  const version =
    address.includes('%') || more.length > 0 ? 0 : process.getBuiltinModule('node:net').isIP(address)
  if (version !== 0) {
    const bits = length === undefined ? null : Number(length)
    if (!/^\d{1,3}$/.test(length ?? '0') || (bits ?? 0) > (version === 4 ? 32 : 128)) return null
    return { text, port, host: { kind: 'addresses', address, bits } }
  }
  if (bracketed !== undefined || length !== undefined) return null
  const withSubdomains = host.startsWith('*.')
  const name = (withSubdomains ? host.slice(2) : host).replace(/\.$/, '')
  // The last label of a name begins with a letter, else it would be an address in an unusual notation.
  if (!NAME.test(name) || !/(?:^|\.)[a-z][^.]*$/.test(name)) return null
  return { text, port, host: { kind: 'name', name, withSubdomains } }
}

/** Reports whether a pattern is for a host name, in lower case without a trailing dot, at whatever port. */
export function matchesName({ host }: HostPattern, name: string): boolean {
  if (host.kind !== 'name') return false
  return host.withSubdomains ? name.endsWith(`.${host.name}`) : name === host.name
}

/** Reports whether a pattern is for a port. */
export const matchesPort = (pattern: HostPattern, port: number): boolean =>
  pattern.port === null || pattern.port === port
