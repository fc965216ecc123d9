import {
  ComputeError,
  type OutboundSettings,
  type RefusedDestination,
  type Sandbox,
} from '../../compute/sandbox.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { NetworkChoice } from './model.ts'
import type { ServerRecords } from './records.ts'
import type { ServerRow } from './table.ts'

/** What holds for the network of one server. */
export interface ServerNetworkState {
  readonly chosen: NetworkChoice
  readonly settings: OutboundSettings
  /** Ports of this machine's loopback that the server reaches at the same port of its own. */
  readonly machinePorts: readonly number[]
  /** Whether the settings hold; null while the server sleeps. */
  readonly enforced: boolean | null
  readonly refused: readonly RefusedDestination[]
}

/** Dependencies of the servers' networks. */
export interface ServerNetworksDependencies {
  records: ServerRecords
  logger: Logger
  /** What servers may reach, if nothing else is set. */
  outbound: OutboundSettings
  machinePorts: readonly number[]
}

const NOTHING_CHOSEN: NetworkChoice = { mode: null, hosts: null }

/** Decides what servers may reach, and keeps what is set for each. */
export class ServerNetworks {
  readonly #dependencies: ServerNetworksDependencies

  constructor(dependencies: ServerNetworksDependencies) {
    this.#dependencies = dependencies
  }

  /**
   * Applies what is set for a server to its sandbox, before the first command.
   *
   * @throws ComputeError if that fails
   */
  async begin(row: ServerRow, sandbox: Sandbox): Promise<void> {
    try {
      await sandbox.outboundControl?.apply(this.#settings(row.network))
    } catch (error) {
      throw new ComputeError('What the server may reach could not be set.', { cause: error })
    }
  }

  /** Returns what is set for single servers, by id. */
  chosen(): { server_id: string; outbound: NetworkChoice['mode']; hosts: string[] | null }[] {
    return this.#dependencies.records.withNetwork().map(({ id, network: { mode, hosts } }) => ({
      server_id: id,
      outbound: mode,
      hosts: hosts === null ? null : [...hosts],
    }))
  }

  /** Returns what holds for a server. @param sandbox undefined while it sleeps */
  async show(row: ServerRow, sandbox: Sandbox | undefined): Promise<ServerNetworkState> {
    const outbound = sandbox?.outboundControl ?? null
    return {
      chosen: row.network ?? NOTHING_CHOSEN,
      settings: this.#settings(row.network),
      machinePorts: this.#dependencies.machinePorts,
      enforced: sandbox === undefined ? null : ((await outbound?.enforced()) ?? false),
      refused: outbound?.refused ?? [],
    }
  }

  /**
   * Changes what a server may reach. It is in effect when this resolves, for open connections too.
   *
   * @throws ComputeError if it could not be applied
   */
  async change(
    row: ServerRow,
    changes: Partial<NetworkChoice>,
    sandbox: Sandbox | undefined,
  ): Promise<ServerNetworkState> {
    const network = { ...NOTHING_CHOSEN, ...row.network, ...changes }
    const kept = network.mode === null && network.hosts === null ? null : network
    this.#dependencies.records.setNetwork(row.id, kept)
    const changed = { ...row, network: kept }
    if (sandbox !== undefined) await this.begin(changed, sandbox)
    return this.show(changed, sandbox)
  }

  #settings(chosen: NetworkChoice | null): OutboundSettings {
    const { outbound } = this.#dependencies
    return { mode: chosen?.mode ?? outbound.mode, hosts: chosen?.hosts ?? outbound.hosts }
  }
}
