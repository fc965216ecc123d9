/** Largest number of characters in a redirect URI. @bound page */
const REDIRECT_URI_LIMIT = 1_000

/**
 * Matches a redirect to a program on this machine, up to its port (RFC 8252, 7.3), in any case (RFC 3986, 6.2.2.1).
 */
const LOOPBACK = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::\d{1,5})?((?:[/?].*)?)$/i

/** Schemes that browsers or systems handle themselves. An app cannot own one (RFC 8252, section 7.1). */
const FOREIGN_SCHEMES = new Set(
  (
    'http https ws wss ftp ftps file filesystem javascript data vbscript livescript mocha blob about view-source ' +
    'jar resource chrome chrome-extension chrome-search chrome-untrusted devtools edge moz-extension ' +
    'safari-web-extension feed wyciwyg intent content android-app mailto tel sms callto facetime news nntp gopher ' +
    'irc ircs cid mid urn tag info ldap ldaps ssh sftp smb nfs telnet rlogin afp shell search help mhtml mk res its'
  ).split(' '),
)

/**
 * Parameters that berth adds (RFC 6749, 4.1.2; RFC 9207). A redirect URI may not contain them, because it is
 * undefined which of two a client reads.
 */
const RESPONSE_PARAMETERS = ['code', 'state', 'iss', 'error', 'error_description', 'error_uri']

/**
 * Returns why codes cannot be sent to a URI, as the end of a sentence; null if they can. Allowed are https anywhere,
 * http on this machine, and the schemes of apps (RFC 8252, 7; RFC 6749, 3.1.2).
 */
export function redirectFault(uri: string): string | null {
  if (uri === '') return 'is empty'
  if (uri.length > REDIRECT_URI_LIMIT) return `is over ${REDIRECT_URI_LIMIT} characters long`
  if (!/^[\x21-\x7e]+$/.test(uri) || /[\\"<>^`{|}]/.test(uri)) return 'has characters that a URI cannot have'
  if (uri.includes('#')) return 'has a fragment'
  const url = URL.parse(uri)
  const scheme = /^([a-z][a-z0-9+.-]*):\/+[^/]/i.exec(uri)?.[1]?.toLowerCase()
  if (!url || scheme === undefined)
    return 'is no address: expected https://..., http://127.0.0.1/... or the own scheme of an app, as in com.example.app:/...'
  const authority = /^[^:]+:\/\/([^/?]*)/.exec(uri)?.[1] ?? ''
  if (authority.includes('@')) return 'has credentials in it'
  const own = RESPONSE_PARAMETERS.find((name) => url.searchParams.has(name))
  if (own !== undefined) return `has the parameter ${own}, which the response has`
  if (scheme === 'http') {
    return LOOPBACK.test(uri) ? null : 'is http, which only 127.0.0.1, [::1] and localhost may be'
  }
  if (scheme === 'https') {
    // Only characters of a host may get into the page's policy.
    return authority !== '' && /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(url.hostname)
      ? null
      : 'has no proper host'
  }
  if (FOREIGN_SCHEMES.has(scheme) || scheme.startsWith('ms-') || scheme.endsWith('-ms')) {
    return `has the scheme ${scheme}:, which is no app's own`
  }
  return null
}

/**
 * Reports whether a redirect URI is the registered one. They are compared character by character, with one exception:
 * for a program on this machine, which listens on any free port (RFC 8252, 7.3), the port and the case of scheme and
 * host may differ.
 */
export function matchesRedirect(given: string, registered: string): boolean {
  if (given === registered) return true
  const [, host, rest] = LOOPBACK.exec(given) ?? []
  const [, registeredHost, registeredRest] = LOOPBACK.exec(registered) ?? []
  return (
    host !== undefined &&
    host.toLowerCase() === registeredHost?.toLowerCase() &&
    rest === registeredRest &&
    URL.canParse(given)
  )
}

/** Adds parameters to a redirect URI and leaves the rest unchanged (RFC 6749, 4.1.2). */
export function withParameters(uri: string, parameters: Readonly<Record<string, string | null>>): string {
  const query = Object.entries(parameters)
    .flatMap(([name, value]) => (value === null ? [] : [`${name}=${encodeURIComponent(value)}`]))
    .join('&')
  return `${uri}${uri.includes('?') ? '&' : '?'}${query}`
}

/** Returns the source expression of a page's policy for a redirect URI. */
export function policySource(uri: string): string {
  const { protocol, origin, hostname } = new URL(uri)
  const isWeb = protocol === 'https:' || protocol === 'http:'
  // The policy's grammar has no IPv6 addresses (CSP 3, 2.3.1).
  return isWeb && !hostname.startsWith('[') ? origin : protocol
}

/** Returns the destination of a redirect URI, for people. */
export function redirectDestination(uri: string): { kind: 'web' | 'machine' | 'app'; name: string } {
  const { protocol, host } = new URL(uri)
  if (protocol === 'https:') return { kind: 'web', name: host }
  return protocol === 'http:' ? { kind: 'machine', name: host } : { kind: 'app', name: protocol }
}
