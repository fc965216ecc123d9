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

/** Reports whether the browser uses TLS. The first entry of the list is from the proxy that the browser talks to. */
const isForwardedTls = ({ headers }: Request): boolean =>
  /^\s*https\s*(?:,|$)/i.test(headers.get('x-forwarded-proto') ?? '')
