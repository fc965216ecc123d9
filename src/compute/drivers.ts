import type { Isolation, PortRange } from '../config/config.ts'
import { StartupError } from '../errors.ts'
import type { Logger } from '../runtime/logger.ts'
import type { SelfCommand } from '../runtime/self.ts'
import { BubblewrapIsolation } from './bubblewrap/isolation.ts'
import type { ComputeDriver, DriverName, Enforced, Probe } from './driver.ts'
import { LandlockIsolation } from './landlock/isolation.ts'
import { LocalDriver } from './local/driver.ts'
import type { LocalDriverOptions } from './local/isolation.ts'
import type { ServerNetwork } from './local/network/server-network.ts'
import { LocalWorkspace } from './local/workspace.ts'
import { NoIsolation } from './none/isolation.ts'
import type { OutboundSettings, SandboxPaths } from './sandbox.ts'
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

/** A driver that cannot be used here. */
interface RejectedDriver {
  name: DriverName
  reason: string
  remedy: string
}

/** The driver in force. */
export interface SelectedDriver {
  driver: ComputeDriver
  /** Whether each server has its own network here, or shares this machine's. */
  network: 'own' | 'shared'
  /** Returns what it really enforces on this machine. */
  enforced(): Promise<Enforced>
  /** Ways in which the isolation is weaker here than its name promises. */
  notes: readonly string[]
  /** The stronger ones, which were tried and cannot be used. */
  rejected: RejectedDriver[]
}

/**
 * Tries the drivers in the given order, strongest first, and takes the first that works, or the one
 * that was asked for. Throws `StartupError` if that one, or none at all, can be used.
 */
export async function selectDriver(
  wanted: 'auto' | Isolation,
  drivers: readonly ComputeDriver[],
): Promise<SelectedDriver> {
  const rejected: RejectedDriver[] = []
  for (const driver of drivers) {
    if (wanted !== 'auto' && driver.name !== wanted) continue
    const probe = await driver.probe()
    if (probe.available) {
      const { network, enforced, notes = [] } = probe
      return { driver, network, enforced, notes, rejected }
    }
    rejected.push({ name: driver.name, reason: probe.reason, remedy: probe.remedy })
  }
  const [last] = rejected.slice(-1)
  if (last === undefined) throw new StartupError(`There is no isolation "${wanted}" on this system.`)
  throw new StartupError(
    `Isolation ${last.name} cannot be used here: ${last.reason} ${last.remedy} Or choose --isolation auto.`,
  )
}

/** Tries every driver, to show what this machine offers. */
export async function probeDrivers(
  drivers: readonly ComputeDriver[],
): Promise<Array<{ name: DriverName; probe: Probe }>> {
  return Promise.all(drivers.map(async (driver) => ({ name: driver.name, probe: await driver.probe() })))
}
