import { BerthError } from '../errors.ts'

/** Decides which Host headers are accepted. */
export interface HostOptions {
  /** The address that the service listens on. */
  bound: string
  /** An additional name from the configuration. */
  publicHost: string | null
}

/** Labels of names below `.localhost` that are berth's own, so that no project has one as its slug. */
export const OWN_LABELS: ReadonlySet<string> = new Set(['berth', 'dashboard', 'localhost'])

/**
 * Reports whether a project may have the host of an origin, now or later: `SLUG.localhost`. A page of an app that is still
 * open, or a service worker that it has left in a browser, acts as whatever answers there after it.
 */
export function mayBeProjects(origin: string, { publicHost }: Pick<HostOptions, 'publicHost'>): boolean {
  const { hostname } = new URL(origin)
  const label = /^([a-z0-9-]+)\.localhost\.?$/.exec(hostname)?.[1]
  return label !== undefined && !OWN_LABELS.has(label) && hostname !== publicHost
}

const WILDCARDS = new Set(['0.0.0.0', '::'])

/** Returns the host of the service's own URL for the address that it listens on. */
export const ownHost = (bound: string): string =>
  WILDCARDS.has(bound) ? '127.0.0.1' : bound.includes(':') ? `[${bound}]` : bound

/**
 * Refuses requests whose Host header names another host. This protects the API from pages whose name resolves to this
 * machine (DNS rebinding): the browser would allow their requests.
 *
 * Accepted are loopback, `*.localhost`, the public host and the bound address. If all addresses are bound, every
 * literal address is accepted, since a rebinding name never is one.
 *
 * @param refuse throws for a name, without its port, that is not accepted here
 * @returns a check that throws BerthError 403 `forbidden`
 */
export function hostGuard(
  { bound, publicHost }: HostOptions,
  refuse: (name: string) => void = () => {},
): (host: string | null) => void {
  const accepted = new Set<string | null>()
  return (host) => {
    if (accepted.has(host)) return
    const name = hostName(host ?? '')
    // An invalid host is refused, even with an accepted suffix.
    if (!isOurs(name) || !URL.canParse(`http://${host}`)) {
      throw new BerthError(
        'forbidden',
        `The Host header ${JSON.stringify(host ?? '')} is not one of this service. Use localhost, or name it with --public-host.`,
      )
    }
    refuse(name)
    if (accepted.size < 256) accepted.add(host)
  }

  function isOurs(name: string): boolean {
    if (!/^[a-z0-9.:_-]+$/.test(name)) return false
    if (name === 'localhost' || name.endsWith('.localhost')) return true
    if (name === bound.toLowerCase() || (publicHost !== null && name === publicHost)) return true
    if (name === '::1') return true
    const address = isAddress(name)
    return address && (name.startsWith('127.') || WILDCARDS.has(bound))
  }
}

/**
 * Refuses what `hostGuard` refuses, and the names that are berth's own at whatever port. Browsers share the cookies of a
 * host between its ports, and those of a name with names below it, so an app that answers there could set the cookies
 * that the browser sends to berth.
 *
 * @returns a check that throws BerthError 403 `forbidden`
 */
export const siteHostGuard = (options: HostOptions): ((host: string | null) => void) =>
  hostGuard(options, (name) => {
    const label = /(?:^|\.)([a-z0-9_-]+)\.localhost$/.exec(name)?.[1]
    if (label === undefined || !OWN_LABELS.has(label) || name === options.publicHost) return
    throw new BerthError(
      'forbidden',
      `The name ${name} is berth's own, and no project answers there. Use localhost or 127.0.0.1.`,
    )
  })

/** Reports whether a name is a literal address: four decimal numbers, or hexadecimal ones with colons. */
function isAddress(name: string): boolean {
  if (name.includes(':')) return /^[0-9a-f:.]+$/.test(name)
  const parts = name.split('.')
  return parts.length === 4 && parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256)
}

/** Returns the name in a Host header, in lower case, without port, brackets and trailing dot. */
function hostName(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(host)
  const name = bracketed?.[1] ?? host.replace(/:\d*$/, '')
  return name.toLowerCase().replace(/\.$/, '')
}

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

/**
 * Ports that browsers, and other clients that fetch as they do, refuse to connect to: other protocols live there. From the
 * Fetch standard, section "Port blocking".
 */
const BLOCKED: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
  109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
  526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
  3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
])

/** Reports whether browsers refuse to open a port. */
export const isBlockedByBrowsers = (port: number): boolean => BLOCKED.has(port)
