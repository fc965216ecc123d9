import type { Logger } from '../../../../runtime/logger.ts'
import type { NetworkFault, OutboundControl, OutboundSettings } from '../../../sandbox.ts'
import type { AcceptedConnection, ProgramSocket } from '../project-ports.ts'
import { Refusals } from './refusals.ts'
import { type RelayCommons, RelayedServer } from './relayed-server.ts'

/** The options of `OutboundProxy`. */
export interface OutboundProxyOptions {
  commons: RelayCommons
  /** The server's id, for remedies. */
  serverId: string
  settings: OutboundSettings
  /** See `ServerNetwork.socketsOfBerth`. */
  socketsOfBerth: Readonly<Record<number, string>>
  /** Reports whether nothing else leads outside. */
  enforced(): Promise<boolean>
  logger: Logger
}

/**
 * The way out of one server whose connections berth takes over its sandboxd: an HTTP proxy. It works in the thread in which
 * these arrive; `OutboundRelay` takes those that the kernel redirects, in another one.
 */
export class OutboundProxy extends Refusals implements OutboundControl {
  readonly enforced: OutboundControl['enforced']
  readonly #server: RelayedServer

  constructor({ commons, serverId, settings, socketsOfBerth, enforced, logger }: OutboundProxyOptions) {
    super(serverId, logger)
    this.enforced = enforced
    this.#server = new RelayedServer(commons, serverId, settings, socketsOfBerth, (refused) =>
      this.note(refused),
    )
  }

  async apply(settings: OutboundSettings): Promise<void> {
    this.forget()
    this.#server.apply(settings)
  }

  async disturb(fault: NetworkFault | null): Promise<void> {
    this.#server.disturb(fault)
  }

  async reported(): Promise<void> {
    this.#server.renewReports()
  }

  /** Serves a connection of a program. Returns null, and it is reset, if the server has too many. */
  accept(socket: ProgramSocket): AcceptedConnection | null {
    return this.#server.proxy(socket)
  }

  /** Cuts all connections. */
  close(): void {
    this.#server.close()
  }
}
