/**
 * The loopback address that "localhost" means as well where a service listens on `host`, or null where that is served
 * already or is none of its business. Whoever listens there gets what is sent to `http://localhost:PORT`, credentials
 * included, since most programs try ::1 first.
 */
export function otherLoopback(host: string): '127.0.0.1' | '::1' | null {
  if (host === '::1') return '127.0.0.1'
  return host === '127.0.0.1' || host === '0.0.0.0' || host === 'localhost' ? '::1' : null
}
