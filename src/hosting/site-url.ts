/**
 * Returns the URL under which this machine reaches a port.
 *
 * @param host address that berth and its sites listen on; for the wildcard address the URL has the loopback one
 */
export function siteUrl(host: string, port: number): string {
  if (host === '0.0.0.0' || host === '::') return `http://127.0.0.1:${port}/`
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}/`
}
