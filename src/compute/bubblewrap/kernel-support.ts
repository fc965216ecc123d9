import { existsSync, readFileSync } from 'node:fs'
import { ifPresent } from '../../runtime/if-present.ts'
import { canFilterSystemCalls, NO_FILTER } from '../../system/linux/seccomp-filter.ts'
import type { SocketCalls } from '../local/network/socket-calls.ts'

/**
 * Keeps commands from creating user namespaces. They would have all capabilities in one; if berth is root, that is
 * enough to mount control groups and lift their own limits.
 */
export const NO_NESTING = '--disable-userns'

const NESTING_NOTE = `commands can make user namespaces of their own, since this bwrap has no ${NO_NESTING} (0.8 has)`

/** What of berth's isolation the kernel and bwrap permit here. Everything, until a failed start of bwrap names the rest. */
export class KernelSupport {
  readonly #settings = new KernelSettings()
  readonly #calls: () => Pick<SocketCalls, 'network'>
  #canForbidNesting = true
  #network: 'own' | 'shared' | null = null

  constructor(calls: () => Pick<SocketCalls, 'network'>) {
    this.#calls = calls
  }

  /** Whether bwrap can keep commands from making user namespaces of their own. */
  get canForbidNesting(): boolean {
    return this.#canForbidNesting
  }

  /**
   * Whose network servers have: their own if the kernel permits it, and tells the networks of sockets apart
   * (SO_NETNS_COOKIE, Linux 5.14).
   */
  get network(): 'own' | 'shared' {
    this.#network ??= this.#calls().network() === 0n ? 'shared' : 'own'
    return this.#network
  }

  /** The settings of a server's own network and the user namespace around it; none if the network is shared. */
  get settings(): Array<[path: string, contents: Uint8Array]> {
    return this.network === 'own' ? this.#settings.files : []
  }

  /** Ways in which the isolation is weaker here, each a sentence for a person. */
  get notes(): string[] {
    return [...(this.#canForbidNesting ? [] : [NESTING_NOTE]), ...(canFilterSystemCalls() ? [] : [NO_FILTER])]
  }

  /**
   * Does without what made bwrap fail: what its error output names, else a network of one's own.
   *
   * @returns whether there is anything left to try without
   */
  reduce(said: string): boolean {
    if (this.#canForbidNesting && said.includes(NO_NESTING)) {
      this.#canForbidNesting = false
      return true
    }
    if (this.#settings.refuse(said)) return true
    if (this.network === 'shared') return false
    this.#network = 'shared'
    return true
  }
}

/**
 * The share of the files that a user may watch (inotify(7)) for one server, and the least number: what the kernel grants
 * on a small machine.
 */
const WATCHES_SHARE = 1 / 4
const LEAST_WATCHES = 8192

/**
 * Settings of a server's own network and of the user namespace that owns it, as /proc/sys has them. bwrap writes them
 * before anything runs inside; later nobody inside may.
 */
const SETTINGS: Readonly<Record<string, number | (() => number)>> = {
  // The first port that programs may listen on.
  '/proc/sys/net/ipv4/ip_unprivileged_port_start': 0,
  // The machine's user has 128 of them by default.
  '/proc/sys/user/max_inotify_instances': 64,
  '/proc/sys/user/max_inotify_watches': () => {
    const most = Number(ifPresent(() => readFileSync('/proc/sys/fs/inotify/max_user_watches', 'latin1')))
    return Math.max(LEAST_WATCHES, Math.floor(most * WATCHES_SHARE))
  },
  // What a server leaves behind fills a table of the kernel's.
  '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait': 5,
  '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close': 2,
  '/proc/sys/net/netfilter/nf_conntrack_udp_timeout': 10,
}

/** The settings of servers that this kernel has and lets bwrap write. */
class KernelSettings {
  readonly #refused = new Set<string>()

  /** Returns each setting's file and its contents. Those of the connection table exist when something has used it. */
  get files(): Array<[path: string, contents: Uint8Array]> {
    return Object.entries(SETTINGS)
      .filter(([path]) => !this.#refused.has(path) && existsSync(path))
      .map(([path, value]) => {
        const number = typeof value === 'number' ? value : value()
        return [path, new TextEncoder().encode(String(number))]
      })
  }

  /**
   * Leaves out the settings that bwrap names in its error output.
   *
   * @returns whether there are any
   */
  refuse(said: string): boolean {
    const named = this.files.filter(([path]) => said.includes(path.slice('/proc'.length)))
    for (const [path] of named) this.#refused.add(path)
    return named.length > 0
  }
}
