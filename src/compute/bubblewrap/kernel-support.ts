import type { SocketCalls } from '../local/network/socket-calls.ts'
import { canFilterSystemCalls, NO_FILTER } from '../sandboxd/seccomp-filter.ts'
import { KernelSettings } from './kernel-settings.ts'

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
