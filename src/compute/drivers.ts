import type { PortRange } from '../config/config.ts'
import type { Logger } from '../runtime/logger.ts'
import { BubblewrapIsolation } from './bubblewrap/isolation.ts'
import type { ComputeDriver } from './driver.ts'
import { LandlockIsolation } from './landlock/isolation.ts'
import { LocalDriver } from './local/driver.ts'
import type { LocalDriverOptions } from './local/isolation.ts'
import type { ServerNetwork } from './local/network/server-network.ts'
import { LocalWorkspace } from './local/workspace.ts'
import { NoIsolation } from './none/isolation.ts'
import type { OutboundSettings } from './outbound-control.ts'
import type { SandboxPaths } from './sandbox.ts'
import type { SelfCommand } from './self.ts'
import type { Workspace } from './workspace.ts'

/** What compute needs from the process that runs it. */
export interface ComputeDependencies {
  /** The command by which berth starts itself again. */
  self: SelfCommand
  /** The PATH that berth was started with. */
  path: string
  /** The variables that berth was started with, which say where version managers keep toolchains; none by default. */
  variables?: Readonly<Record<string, string | undefined>>
  /** What servers with their own network reach until something else is set for them; the internet by default. */
  outbound?: OutboundSettings
  /** Ports of this machine's loopback that these servers reach at the same port of their own. */
  machinePorts?: readonly number[]
  /** Ports of projects, which these servers reach at the same port of their own; none by default. */
  projectPorts?: PortRange | null
  /** Whether commands may use Unix sockets where those of the user's programs cannot be hidden; false by default. */
  allowUnixSockets?: boolean
  /** Returns the URL at which commands reach berth's API; null, as by default, if there is none. */
  baseUrl?(network: 'own' | 'shared'): string | null
  /** Returns further variables of every command of a server. */
  environment?(serverId: string, paths: SandboxPaths): Readonly<Record<string, string>>
  /** Prepares a server's caches, before its first command. */
  prepareCaches?(serverId: string, caches: Workspace): Promise<void>
  /** Opens what berth provides inside a server's own network; called before the server's first command. */
  provide?(serverId: string, network: ServerNetwork): void | Promise<void>
}

/** Returns the drivers that run servers on this machine, strongest isolation first. */
export function localDrivers(
  options: ComputeDependencies & { dataDir: string; logger: Logger },
): ComputeDriver[] {
  const all: LocalDriverOptions = {
    variables: {},
    outbound: { mode: 'public', hosts: [] },
    machinePorts: [],
    projectPorts: null,
    allowUnixSockets: false,
    baseUrl: () => null,
    environment: () => ({}),
    prepareCaches: async () => {},
    provide: () => {},
    ...options,
    workspace: (dir, caches) => new LocalWorkspace(dir, undefined, undefined, caches),
  }
  return [new BubblewrapIsolation(all), new LandlockIsolation(all), new NoIsolation(all)].map(
    (isolation) => new LocalDriver(isolation, all),
  )
}
