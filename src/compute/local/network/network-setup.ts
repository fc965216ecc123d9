import { closeSync } from 'node:fs'
import type { PortRange } from '../../../config/config.ts'
import { ComputeError } from '../../driver.ts'
import { loadDescriptorCalls } from '../../sandboxd/descriptors.ts'
import { BLANK_SOCKETS } from '../../sandboxd/protocol.ts'
import type { Spawned } from '../spawn.ts'
import { findNetwork, joinableNetwork, type Namespaces } from './namespaces.ts'
import type { ProjectPorts } from './project-ports.ts'
import { redirectOutbound } from './rules.ts'
import { ServerNetwork } from './server-network.ts'
import { loadSocketCalls, type SocketCalls, type SocketFacts } from './socket-calls.ts'

/** Sets up the own networks of sandboxes, for all servers of a driver. */
export class NetworkLoader {
  readonly #calls = loadSocketCalls()
  readonly #descriptors = loadDescriptorCalls()
  readonly #ownNetwork = this.#calls.network()
  readonly #projectPorts: ProjectPorts
  readonly #path: string

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
   * @throws ComputeError if other descriptors came, or none
   */
  receive(socket: number): ServerNetwork {
    let sockets: number[] = []
    try {
      sockets = this.#descriptors.receive(socket, BLANK_SOCKETS.length)
      checkSockets(this.#calls, sockets, this.#ownNetwork)
      return new ServerNetwork(this.#calls, this.#projectPorts, sockets)
    } catch (error) {
      for (const descriptor of sockets) closeSync(descriptor)
      const why = error instanceof Error ? error.message : String(error)
      throw new ComputeError(`The server has no network: ${why}`, { cause: error })
    } finally {
      closeSync(socket)
    }
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
  /** Resolves with the outcome of `NetworkLoader.redirect`; undefined if the namespace was not found yet. */
  #redirection: Promise<string | null | undefined>
  #network: ServerNetwork | null = null

  /** Takes ownership of both descriptors. */
  constructor(loader: NetworkLoader, report: number | null, sockets: number | null) {
    this.#loader = loader
    this.#sockets = sockets
    this.#redirection = this.#redirectEarly(report)
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
    const network = this.#loader.receive(socket)
    this.#network = network
    let unredirected = await this.#redirection
    if (unredirected === undefined) {
      const late = this.#loader.redirect(network.namespace(), this.#ended.signal)
      this.#redirection = late
      unredirected = await late
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
    await this.#redirection
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
 * Checks what sandboxd has sent. Throws an `Error` unless they are `BLANK_SOCKETS`, all of one network, and that is
 * not berth's own.
 */
function checkSockets(calls: SocketCalls, sockets: readonly number[], own: bigint): void {
  const half = BLANK_SOCKETS.length / 2
  if (sockets.length !== half && sockets.length !== BLANK_SOCKETS.length) {
    throw new Error(`sandboxd has sent ${sockets.length} sockets.`)
  }
  const facts = sockets.map((descriptor) => calls.facts(descriptor))
  for (const [index, fact] of facts.entries()) {
    const wanted = BLANK_SOCKETS[index]
    if (wanted === undefined || !isBlank(fact, wanted)) throw new Error('sandboxd has sent something else.')
    if (fact.network === 0n) throw new Error('the kernel does not tell networks apart (Linux 5.14 does).')
    if (fact.network === own) throw new Error("sandboxd's sockets are of berth's own network.")
    if (fact.network !== facts[0]?.network) throw new Error("sandboxd's sockets are of different networks.")
  }
}

const IPPROTO_TCP = 6
const IPPROTO_UDP = 17

function isBlank(fact: SocketFacts, { domain, type }: { domain: number; type: number }): boolean {
  return (
    fact.domain === domain &&
    fact.type === type &&
    (fact.protocol === IPPROTO_TCP || fact.protocol === IPPROTO_UDP) &&
    !fact.listens &&
    !fact.connected
  )
}
