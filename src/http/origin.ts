import type { HostOptions } from './host.ts'

/**
 * The origin under which the service was asked, as in `http://127.0.0.1:4747`: what metadata names and credentials are
 * bound to is what the caller can reach. The Host header has been checked before (`hostGuard`). A proxy in front that
 * ends TLS says so in X-Forwarded-Proto, which counts for the configured public name alone.
 */
export function originOf(request: Request, { publicHost }: Pick<HostOptions, 'publicHost'>): string {
  const host = (request.headers.get('host') ?? '').toLowerCase()
  const [, name = '', port = ''] = /^(.*?)(?::(\d*))?$/.exec(host) ?? []
  const isTls = publicHost !== null && name === publicHost && isForwardedTls(request)
  const [scheme, usual] = isTls ? ['https', '443'] : ['http', '80']
  // Browsers and clients leave the scheme's own port out, where proxies may write it (RFC 6454, 6.2).
  return `${scheme}://${name}${port === '' || port === usual ? '' : `:${port}`}`
}

/** Whether the browser came by TLS: of several proxies the first in the list is the one that it talks to. */
const isForwardedTls = ({ headers }: Request): boolean =>
  /^\s*https\s*(?:,|$)/i.test(headers.get('x-forwarded-proto') ?? '')
