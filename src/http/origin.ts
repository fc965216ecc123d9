import type { HostOptions } from './host.ts'

/**
 * Returns the origin to which the client sent its request, as in `http://127.0.0.1:4747`. Metadata and credentials
 * use it, because the client can reach it. `hostGuard` has checked the Host header before. A proxy that ends TLS
 * sends X-Forwarded-Proto, which counts only for the configured public name.
 */
export function originOf(request: Request, { publicHost }: Pick<HostOptions, 'publicHost'>): string {
  const host = (request.headers.get('host') ?? '').toLowerCase()
  const [, name = '', port = ''] = /^(.*?)(?::(\d*))?$/.exec(host) ?? []
  const isTls = publicHost !== null && name === publicHost && isForwardedTls(request)
  const [scheme, usual] = isTls ? ['https', '443'] : ['http', '80']
  // Browsers and clients omit the default port of a scheme; proxies may add it (RFC 6454, 6.2).
  return `${scheme}://${name}${port === '' || port === usual ? '' : `:${port}`}`
}

/** What `isFromOwnPage` asks of a request. */
interface PageRule {
  /** Whether a request that names no page is refused. Programs and old browsers name none. */
  readonly needsOrigin?: boolean
  /** Whether what a person has begun, such as by an address or a bookmark, counts as well (`Sec-Fetch-Site: none`). */
  readonly acceptsPerson?: boolean
}

/**
 * Reports whether no page of another origin sends a request. Browsers name the page that sends it, and say how it is
 * related to the receiver (Fetch, 3.2; Fetch Metadata, 2.3). Another port of the same host is "same-site".
 *
 * @param own the origin of the request, by `originOf`
 */
export function isFromOwnPage(
  { headers }: Request,
  own: string,
  { needsOrigin = false, acceptsPerson = false }: PageRule = {},
): boolean {
  const sentFrom = headers.get('origin')
  if (sentFrom === null ? needsOrigin : sentFrom !== own) return false
  const site = headers.get('sec-fetch-site')
  return site === null || site === 'same-origin' || (acceptsPerson && site === 'none')
}

/**
 * Reports whether an origin is that of a request's Host header, whatever its scheme. Pages without an address send
 * `null`, which never is.
 */
export const isOriginOfHost = (origin: string, host: string | null): boolean =>
  host !== null && origin.toLowerCase().replace(/^https?:\/\//, '') === host.toLowerCase()

/** Reports whether the browser uses TLS. The first entry of the list is from the proxy that the browser talks to. */
const isForwardedTls = ({ headers }: Request): boolean =>
  /^\s*https\s*(?:,|$)/i.test(headers.get('x-forwarded-proto') ?? '')
