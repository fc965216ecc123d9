import { addressKind, isAddress, LOCAL_NAME, LOCALHOST } from '../../runtime/address.ts'
import type { InterfaceAddresses } from '../../system/interface-addresses.ts'
import { URL_LIMIT } from './model.ts'

/** Returns all addresses of a name. Rejects or returns none if the name does not resolve. */
export type Resolve = (name: string) => Promise<string[]>

/** Error: a URL cannot be a webhook's destination. The message is a sentence with the reason. */
export class DestinationError extends Error {
  override readonly name = 'DestinationError'

  constructor(
    message: string,
    /** Whether the lookup failed: the name may resolve another time. */
    readonly isUnresolved = false,
  ) {
    super(message)
  }
}

/** A checked destination and its permitted addresses. */
export interface Destination {
  url: URL
  /** In lower case, without brackets and trailing dot. */
  name: string
  addresses: string[]
}

/** Decides which destinations are allowed. */
export interface DestinationRules {
  /** Also allows http and loopback, for development. */
  readonly allowLocal: boolean
  resolve: Resolve
  /** The addresses of this machine. */
  readonly ownAddresses: InterfaceAddresses
}

/** The instance's setting for destinations on this machine. It holds until berth stops, also over a reset. */
export interface LocalWebhooks {
  /** Whether webhooks may use http and loopback addresses. */
  allowed: boolean
}

const LOOPBACK = ['127.0.0.1', '::1']

/**
 * Checks the destination of a webhook. It must use https without credentials, and every address of its name must be
 * public unicast, so nobody can use berth to call services that only its machine or network reaches (OWASP,
 * "Server-side request forgery"). The connection must then use one of the checked addresses.
 *
 * @throws DestinationError if the destination is not allowed or does not resolve
 */
export async function checkDestination(text: string, rules: DestinationRules): Promise<Destination> {
  const url = parse(text)
  const name = url.hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
  if (!/^[a-z0-9._:-]+$/.test(name) || name.includes('..'))
    throw refused(`"${url.hostname}" is not a host name`)
  const { allowLocal } = rules
  const secure = url.protocol === 'https:'
  if (!secure && !(allowLocal && url.protocol === 'http:')) {
    throw refused(`it must begin with https://, got ${url.protocol}//${localHint(allowLocal)}`)
  }
  if (LOCALHOST.test(name) && !allowLocal) throw refused(`"${name}" is this machine${localHint(allowLocal)}`)
  if (LOCAL_NAME.test(name)) throw refused(`"${name}" is a name of a private network`)

  const literal = isAddress(name)
  const addresses = literal
    ? [name]
    : LOCALHOST.test(name)
      ? LOOPBACK
      : await resolveName(name, rules.resolve)
  for (const address of addresses) {
    const kind = addressKind(address, rules.ownAddresses)
    if (kind === 'public' && secure) continue
    if (kind === 'loopback' && allowLocal) continue
    const what = literal ? address : `"${name}" resolves to ${address}, which`
    throw refused(
      kind === 'public'
        ? `http is for loopback addresses only, and ${what} is not one`
        : `${what} is not a public address (${kind})${kind === 'loopback' ? localHint(allowLocal) : ''}`,
    )
  }
  return { url, name, addresses }
}

function parse(text: string): URL {
  // The parser would drop tabs and line ends and read a backslash as a slash, so the URL would differ from the text
  // that people see.
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
  allowLocal
    ? ''
    : ' (to admit http and loopback for development, run "berth webhooks local on", which holds until berth stops, or start it with "berth serve --allow-local-webhooks")'
