import { closeSync } from 'node:fs'
import type { PortRange } from '../../../config/config.ts'
import { loadDescriptorCalls } from '../../../system/linux/descriptors.ts'
import { ComputeError } from '../../sandbox.ts'
import { BLANK_SOCKETS, RULES_SOCKET } from '../../sandboxd/protocol.ts'
import type { Spawned } from '../spawn.ts'
import { findNetwork, joinableNetwork, type Namespaces } from './namespaces.ts'
import type { ProjectPorts } from './project-ports.ts'
import { type RuleCopy, readNetworkRules, writeRules } from './rule-copies.ts'
import { redirectOutbound } from './rules.ts'
import { type NetworkSockets, ServerNetwork } from './server-network.ts'
import { loadSocketCalls, type SocketCalls, type SocketFacts } from './socket-calls.ts'

/** Sets up networks that sandboxes have to themselves, for all servers of a driver. */
export class NetworkLoader {
  readonly #calls = loadSocketCalls()
  readonly #descriptors = loadDescriptorCalls()
  readonly #ownNetwork = this.#calls.network()
  readonly #projectPorts: ProjectPorts
  readonly #path: string
  /** The rules of the first network that has some; undefined before, null if they cannot be copied. */
  #rules: RuleCopy | null | undefined

  /**
   * @param projectPorts ports of projects that servers reach on their own loopback; null for none
   * @param path the PATH that nsenter and nft are looked for in
   */
  constructor(projectPorts: PortRange | null = null, path = '') {
    this.#projectPorts = { range: projectPorts }
    this.#path = path
  }

  /** Begins to set up the network of a sandbox whose process was started. Takes ownership of the descriptors. */
  begin({ report, descriptors }: Pick<Spawned, 'report' | 'descriptors'>): NetworkSetup {
    return new NetworkSetup(this, report, descriptors)
  }

  /**
   * Receives the sockets that sandboxd has sent before it was ready. Closes the socket over which they came, so that
   * nothing more can come.
   *
   * @param socket berth's end of the socket for descriptors
   * @returns the network, and its `RULES_SOCKET`, which is the caller's to close
   * @throws ComputeError if other descriptors came, or none
   */
  receive(socket: number): { network: ServerNetwork; rules: number | null } {
    let sockets: number[] = []
    try {
      sockets = this.#descriptors.receive(socket, BLANK_SOCKETS.length + 1)
      for (const descriptor of sockets) this.#calls.neverWait(descriptor)
      const { rules, ...others } = checkSockets(this.#calls, sockets, this.#ownNetwork)
      return { network: new ServerNetwork(this.#calls, this.#projectPorts, others), rules }
    } catch (error) {
      for (const descriptor of sockets) closeSync(descriptor)
      const why = error instanceof Error ? error.message : String(error)
      throw new ComputeError(`The server has no network: ${why}`, { cause: error })
    } finally {
      closeSync(socket)
    }
  }

  /** Whether rules are copied from another network, so that no process has to make them. */
  get hasRules(): boolean {
    return this.#rules !== undefined && this.#rules !== null
  }

  /**
   * Redirects what leaves a network by the rules of another.
   *
   * @param socket its `RULES_SOCKET`
   * @returns whether the kernel has taken them
   */
  copyRules(socket: number): boolean {
    if (!this.#rules) return false
    const isCopied = writeRules(this.#calls, socket, this.#rules)
    // What the kernel has refused once is not tried again.
    if (!isCopied) this.#rules = null
    return isCopied
  }

  /**
   * Keeps the rules of a network for the next ones, if it is the first.
   *
   * @param socket its `RULES_SOCKET`
   */
  keepRules(socket: number): void {
    if (this.#rules === undefined) this.#rules = readNetworkRules(this.#calls, socket)
  }

  /**
   * Redirects what leaves a network, if the system permits that.
   *
   * @param network its namespace, which is closed; null if the kernel refuses it
   * @param signal ends it
   * @returns null, or why nothing is redirected, for a person
   */
  async redirect(network: number | null, signal: AbortSignal): Promise<string | null> {
    const namespaces = network === null ? null : joinableNetwork(this.#calls, network)
    if (namespaces === null) return 'The kernel does not show who owns the network.'
    try {
      return await this.#redirect(namespaces, signal)
    } finally {
      closeSync(namespaces.network)
      if (namespaces.owner !== null) closeSync(namespaces.owner)
    }
  }

  async #redirect(namespaces: Namespaces, signal: AbortSignal): Promise<string | null> {
    const { range } = this.#projectPorts
    const unredirected = await redirectOutbound(namespaces, range, this.#path, signal)
    if (unredirected === null || range === null || signal.aborted) return unredirected
    // The kernel may lack what only the projects' ports need.
    const withoutProjects = await redirectOutbound(namespaces, null, this.#path, signal)
    if (!signal.aborted) this.#projectPorts.range = null
    return withoutProjects
  }
}

/** Sets up the own network of one sandbox, beside the sandbox's start as far as possible. */
export class NetworkSetup {
  readonly #loader: NetworkLoader
  readonly #ended = new AbortController()
  /** Berth's end of the socket over which sandboxd sends those of the network; null after that. */
  #sockets: number | null
  /** Resolves with the outcome of `NetworkLoader.redirect`; undefined if it was not called yet. */
  #redirection: Promise<string | null | undefined>
  /** Berth's end of what bwrap reports to, if nothing of it is read. It is open as long as bwrap may write. */
  #report: number | null = null
  #network: ServerNetwork | null = null

  /** Takes ownership of both descriptors. */
  constructor(loader: NetworkLoader, report: number | null, sockets: number | null) {
    this.#loader = loader
    this.#sockets = sockets
    if (loader.hasRules) {
      this.#report = report
      this.#redirection = Promise.resolve(undefined)
    } else this.#redirection = this.#redirectEarly(report)
  }

  /** The network, once sandboxd has sent its sockets. */
  get network(): ServerNetwork | null {
    return this.#network
  }

  /**
   * Receives the sockets of the network, when sandboxd is ready; resolves when the network is complete.
   *
   * @throws ComputeError if sandboxd has sent none, or the sandbox ends meanwhile
   */
  async finish(): Promise<ServerNetwork> {
    const socket = this.#sockets
    this.#sockets = null
    if (socket === null) throw new ComputeError('The server is not running any more; start it again.')
    const { network, rules } = this.#loader.receive(socket)
    this.#network = network
    this.#closeReport()
    let unredirected: string | null
    try {
      unredirected = await this.#redirect(network, rules)
    } finally {
      if (rules !== null) closeSync(rules)
    }
    // The sandbox may have ended meanwhile, and then the network is closed.
    if (this.#ended.signal.aborted) throw new ComputeError('The sandbox did not start: it ended meanwhile.')
    network.configure(unredirected)
    return network
  }

  /** Gives up what is under way, and closes the network. Resolves when nothing of it is left. */
  async stop(): Promise<void> {
    this.#ended.abort()
    this.#network?.close()
    if (this.#sockets !== null) closeSync(this.#sockets)
    this.#sockets = null
    this.#closeReport()
    await this.#redirection
  }

  /** Redirects what leaves the network, unless it is done. Returns null, or why nothing is redirected. */
  async #redirect(network: ServerNetwork, rules: number | null): Promise<string | null> {
    const early = await this.#redirection
    if (early === undefined && rules !== null && this.#loader.copyRules(rules)) return null
    if (early === undefined)
      this.#redirection = this.#loader.redirect(network.namespace(), this.#ended.signal)
    const unredirected = (await this.#redirection) ?? null
    if (unredirected === null && rules !== null && !this.#ended.signal.aborted) this.#loader.keepRules(rules)
    return unredirected
  }

  #closeReport(): void {
    if (this.#report !== null) closeSync(this.#report)
    this.#report = null
  }

  /** Redirects what leaves the network as soon as bwrap has made it, while the sandbox starts. */
  async #redirectEarly(report: number | null): Promise<string | null | undefined> {
    if (report === null) return undefined
    const { signal } = this.#ended
    const network = await findNetwork(report, signal)
    return network === null ? undefined : this.#loader.redirect(network, signal)
  }
}

/**
 * Checks what sandboxd has sent. Throws an `Error` unless they are `BLANK_SOCKETS`, and perhaps
 * `RULES_SOCKET`, all of one network, and that is not berth's own. Returns them by their use.
 */
function checkSockets(
  calls: SocketCalls,
  sockets: readonly number[],
  own: bigint,
): NetworkSockets & { readonly rules: number | null } {
  const half = BLANK_SOCKETS.length / 2
  const facts = sockets.map((descriptor) => calls.facts(descriptor))
  const rules = facts.findIndex(({ domain }) => domain === RULES_SOCKET.domain)
  const blank = rules === -1 ? sockets.length : sockets.length - 1
  if (blank !== half && blank < BLANK_SOCKETS.length) {
    throw new Error(`sandboxd has sent ${sockets.length} sockets.`)
  }
  for (const [index, fact] of facts.entries()) {
    const wanted = index < blank ? BLANK_SOCKETS[index] : RULES_SOCKET
    if (wanted === undefined || !isWanted(fact, wanted)) throw new Error('sandboxd has sent something else.')
    if (fact.network === 0n) throw new Error('the kernel does not tell networks apart (Linux 5.14 does).')
    if (fact.network === own) throw new Error("sandboxd's sockets are of berth's own network.")
    if (fact.network !== facts[0]?.network) throw new Error("sandboxd's sockets are of different networks.")
  }
  // Checked above: those of each IP version are in the order of `BLANK_SOCKETS`.
  const versionAt = (first: number): NetworkSockets['v4'] => {
    const [listener = -1, connector = -1, udp = -1] = sockets.slice(first, first + half)
    return { listener, connector, udp }
  }
  return {
    v4: versionAt(0),
    v6: blank > half ? versionAt(half) : null,
    rules: sockets[rules] ?? null,
  }
}

const IPPROTO_TCP = 6
const IPPROTO_UDP = 17

function isWanted(fact: SocketFacts, wanted: { domain: number; type: number; protocol?: number }): boolean {
  if (fact.domain !== wanted.domain || fact.type !== wanted.type) return false
  if (wanted.protocol !== undefined) return fact.protocol === wanted.protocol
  return (fact.protocol === IPPROTO_TCP || fact.protocol === IPPROTO_UDP) && !fact.listens && !fact.connected
}
