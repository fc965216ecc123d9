import ipaddr from 'ipaddr.js'
import { URL_LIMIT } from './model.ts'

/** Looks up all addresses of a name; rejects or gives none where it does not resolve. */
export type Resolve = (name: string) => Promise<string[]>

/** Why a URL cannot be a webhook's destination, as a sentence for whoever gave it. */
export class DestinationError extends Error {
  override readonly name = 'DestinationError'

  constructor(
    message: string,
    /** Whether it is for want of an answer: the name may resolve another time. */
    readonly unresolved = false,
  ) {
    super(message)
  }
}

/** A destination that was checked, with the addresses that a connection may go to. */
export interface Destination {
  url: URL
  /** Without brackets and trailing dot, in lower case. */
  name: string
  addresses: string[]
}

/** What decides which destinations are allowed. */
export interface DestinationRules {
  /** For development: http and loopback are allowed too. */
  allowLocal: boolean
  resolve: Resolve
}

/** Names that belong to a machine or a network, whatever they resolve to (RFC 6761, RFC 6762, RFC 8375). */
const LOCAL_NAME = /(?:^|\.)(?:local|internal|localdomain|lan|home\.arpa)$/
const LOCALHOST = /(?:^|\.)localhost$/
const LOOPBACK = ['127.0.0.1', '::1']

/** Public by their range, but served by the machine that a cloud provider runs underneath. */
const PROVIDER_ADDRESSES = new Set(['168.63.129.16'])

/**
 * Checks where a webhook is to be sent: https, no credentials, and every address of the name must be
 * public unicast, so that berth cannot be made to call what only its own machine or network reaches
 * (OWASP, "Server-side request forgery"). The connection must then go to one of the checked addresses.
 *
 * @throws DestinationError
 */
export async function checkDestination(text: string, rules: DestinationRules): Promise<Destination> {
  const url = parse(text)
  const name = url.hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
  if (!/^[a-z0-9._:-]+$/.test(name) || name.includes('..')) throw refused(`"${url.hostname}" is no host name`)
  const { allowLocal } = rules
  const secure = url.protocol === 'https:'
  if (!secure && !(allowLocal && url.protocol === 'http:')) {
    throw refused(`it must begin with https://, got ${url.protocol}//${localHint(allowLocal)}`)
  }
  if (LOCALHOST.test(name) && !allowLocal) throw refused(`"${name}" is this machine${localHint(allowLocal)}`)
  if (LOCAL_NAME.test(name)) throw refused(`"${name}" is a name of a private network`)

  const literal = isLiteral(name)
  const addresses = literal
    ? [name]
    : LOCALHOST.test(name)
      ? LOOPBACK
      : await resolveName(name, rules.resolve)
  for (const address of addresses) {
    const kind = kindOf(address)
    if (kind === 'public' && secure) continue
    if (kind === 'loopback' && allowLocal) continue
    const what = literal ? address : `"${name}" resolves to ${address}, which`
    throw refused(
      kind === 'public'
        ? `http is for loopback addresses only, and ${what} is none`
        : `${what} is not a public address (${kind})${kind === 'loopback' ? localHint(allowLocal) : ''}`,
    )
  }
  return { url, name, addresses }
}

function parse(text: string): URL {
  // The parser would drop tabs and line ends and read a backslash as a slash: what it then means is not what is seen.
  if (text.length > URL_LIMIT) throw refused(`it is over ${URL_LIMIT} characters long`)
  if (/[\p{Cc}\p{Z}\\]/u.test(text)) throw refused('it has spaces, control characters or backslashes')
  const authority = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(text)?.[1]
  const url = authority ? URL.parse(text) : null
  if (!url) throw refused('expected an absolute URL such as https://example.com/hook')
  if (authority?.includes('@')) throw refused('credentials in it are not allowed')
  if (url.port === '0') throw refused('port 0 cannot be connected to')
  return url
}

async function resolveName(name: string, resolve: Resolve): Promise<string[]> {
  const addresses = await resolve(name).catch(() => [])
  if (addresses.length > 0) return addresses
  throw new DestinationError(`The webhook's url is not reachable: "${name}" does not resolve.`, true)
}

const refused = (why: string): DestinationError =>
  new DestinationError(`The webhook's url is refused: ${why}.`)

const localHint = (allowLocal: boolean): string =>
  allowLocal ? '' : ' (berth serve --allow-local-webhooks admits http and loopback for development)'

/** An interface id of ISATAP, which carries an IPv4 address that a tunnel leads to (RFC 5214, 6.1). */
const isIsatap = ([, , , , owner = 0, marker = 0]: readonly number[]): boolean =>
  (owner & 0xfdff) === 0 && marker === 0x5efe

/** What an address is: `public`, `loopback`, or the name of the range that makes it neither. */
type AddressKind = 'public' | 'loopback' | (string & {})

const isLiteral = (name: string): boolean => name.includes(':') || ipaddr.IPv4.isValidFourPartDecimal(name)

/** Judges an address by the special ranges of IANA's registries. */
function kindOf(address: string): AddressKind {
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
