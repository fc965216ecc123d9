/**
 * Returns the other loopback address that "localhost" resolves to, if a service listens on `host`; null if the
 * service covers it already or does not listen on loopback. Most programs try ::1 first, so a listener there would
 * receive what is sent to `http://localhost:PORT`, credentials included.
 */
export function otherLoopback(host: string): '127.0.0.1' | '::1' | null {
  if (host === '::1') return '127.0.0.1'
  return host === '127.0.0.1' || host === '0.0.0.0' || host === 'localhost' ? '::1' : null
}

/** Returns a host if it is one of the two loopback addresses that berth listens on; null for names and others. */
export const asLoopback = (host: string): '127.0.0.1' | '::1' | null =>
  host === '127.0.0.1' || host === '::1' ? host : null
