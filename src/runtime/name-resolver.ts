import { readFileSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import ipaddr from 'ipaddr.js'
import { isAddress } from './address.ts'
import { codeOf } from './error-info.ts'

const RESOLV_CONF = '/etc/resolv.conf'
const HOSTS = '/etc/hosts'

/** Milliseconds for the first attempt at a name server, and the attempts at each; the second takes twice as long. */
const ATTEMPT_MS = 2_000
const ATTEMPTS = 2

/** Codes of look-ups that found no such name, or no record of the type. */
const NOT_FOUND: readonly unknown[] = ['ENOTFOUND', 'ENODATA', 'EBADNAME']

type DnsResolver = InstanceType<typeof import('node:dns/promises').Resolver>

/** What resolv.conf(5) says, and the client that was made for it. */
interface Configuration {
  readonly resolver: DnsResolver
  /** Domains in which names are searched. */
  readonly search: readonly string[]
  /** Dots that make a name absolute. */
  readonly dots: number
}

/**
 * Resolves names by /etc/hosts and the name servers of resolv.conf(5), as they are at each look-up.
 *
 * It does not use `getaddrinfo`, which occupies a thread of Bun's pool until the name servers respond: the pool has as
 * many threads as the machine has processors, and calls on files wait for them too. Other sources of nsswitch.conf(5),
 * such as multicast DNS, are therefore not asked.
 */
export class NameResolver {
  readonly #resolvConf = new WatchedFile(RESOLV_CONF)
  readonly #hostsFile = new WatchedFile(HOSTS)
  #configuration: Configuration | null = null
  #hosts: ReadonlyMap<string, readonly string[]> = new Map()

  /**
   * Looks up all addresses of a name, IPv6 ones without a zone.
   *
   * @param options `search`: also looks in the machine's search domains, as programs do. What a DNS query asks for is
   *   absolute: who asked has searched already
   * @returns an empty array if there is no such name
   * @throws Error with a `code` if no name server responds, or one fails
   */
  async lookUp(name: string, { search }: { search: boolean }): Promise<string[]> {
    if (isAddress(name)) return [name]
    const isAbsolute = name.endsWith('.')
    const plain = (isAbsolute ? name.slice(0, -1) : name).toLowerCase()
    if (plain === '') return []
    const listed = this.#readHosts().get(plain)
    if (listed !== undefined) return [...listed]
    const configuration = await this.#configure()
    const domains = search && !isAbsolute ? configuration.search : []
    const inDomains = domains.map((domain) => `${plain}.${domain}`)
    const isQualified = plain.split('.').length > configuration.dots
    for (const candidate of isQualified ? [plain, ...inDomains] : [...inDomains, plain]) {
      const found = await resolve(configuration.resolver, candidate)
      if (found.length > 0) return found
    }
    return []
  }

  /** Returns the machine's name servers, as `dns.getServers` does. */
  async servers(): Promise<string[]> {
    return (await this.#configure()).resolver.getServers()
  }

  async #configure(): Promise<Configuration> {
    const { Resolver } = await import('node:dns/promises')
    if (this.#configuration === null || this.#resolvConf.hasChanged()) {
      // It reads the name servers itself, when it is made.
      const resolver = new Resolver({ timeout: ATTEMPT_MS, tries: ATTEMPTS })
      this.#configuration = { resolver, ...readSearch(this.#resolvConf.read()) }
    }
    return this.#configuration
  }

  #readHosts(): ReadonlyMap<string, readonly string[]> {
    if (this.#hostsFile.hasChanged()) this.#hosts = parseHosts(this.#hostsFile.read())
    return this.#hosts
  }
}

/** Looks up the addresses of an absolute name, which is empty if there are none. */
async function resolve(resolver: DnsResolver, name: string): Promise<string[]> {
  const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const found = [ipv4, ipv6].flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
  if (found.length > 0) return [...new Set(found.map(canonical))]
  for (const result of [ipv4, ipv6]) {
    if (result.status === 'rejected' && !NOT_FOUND.includes(codeOf(result.reason))) throw result.reason
  }
  return []
}

/** A file that is read again when it has changed. */
class WatchedFile {
  readonly #path: string
  #seen: string | null = null

  constructor(path: string) {
    this.#path = path
  }

  /** Reports whether the file is another one or was written since the last call. */
  hasChanged(): boolean {
    const stats = statSync(this.#path, { bigint: true, throwIfNoEntry: false })
    const now = stats === undefined ? '' : `${stats.dev} ${stats.ino} ${stats.size} ${stats.mtimeNs}`
    if (now === this.#seen) return false
    this.#seen = now
    return true
  }

  /** Returns the file's text, which is empty if it cannot be read. */
  read(): string {
    try {
      return readFileSync(this.#path, 'utf8')
    } catch {
      return ''
    }
  }
}

/** Reads where names are searched from resolv.conf(5). The last line of a kind counts. */
function readSearch(text: string): { search: string[]; dots: number } {
  const ofHost = hostname().split('.').slice(1).join('.')
  let search = ofHost === '' ? [] : [ofHost]
  let dots = 1
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line.trim().split(/\s+/)
    if (keyword === 'search') search = values
    else if (keyword === 'domain') search = values.slice(0, 1)
    else if (keyword !== 'options') continue
    for (const value of values) dots = Number(/^ndots:(\d+)$/.exec(value)?.[1] ?? dots)
  }
  return { search: search.map((domain) => domain.replace(/\.$/, '').toLowerCase()).filter(Boolean), dots }
}

/** Reads the addresses of names from hosts(5). */
function parseHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (names.length === 0 || !ipaddr.isValid(address.replace(/%.*$/, ''))) continue
    for (const name of names.map((one) => one.toLowerCase())) {
      hosts.set(name, [...new Set([...(hosts.get(name) ?? []), canonical(address)])])
    }
  }
  return hosts
}

const canonical = (address: string): string => ipaddr.parse(address.replace(/%.*$/, '')).toString()
