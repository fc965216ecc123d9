/**
 * Returns the URL under which this machine reaches what listens on a port.
 *
 * @param host the address that berth, and every site of it, listens on; of all addresses the loopback one is taken
 */
export function siteUrl(host: string, port: number): string {
  if (host === '0.0.0.0' || host === '::') return `http://127.0.0.1:${port}/`
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}/`
}
