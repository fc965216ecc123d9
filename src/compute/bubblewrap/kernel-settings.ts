import { existsSync, readFileSync } from 'node:fs'
import { ifPresent } from '../../runtime/if-present.ts'

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
export class KernelSettings {
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
