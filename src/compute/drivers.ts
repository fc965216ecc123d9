import type { Config, PortRange } from '../config/config.ts'
import { StartupError } from '../errors.ts'
import type { Logger } from '../runtime/logger.ts'
import type { SelfCommand } from '../runtime/self.ts'
import { within } from '../runtime/wait.ts'
import { BubblewrapIsolation } from './bubblewrap/isolation.ts'
import type { ComputeDriver, DriverName, Enforced, Probe } from './driver.ts'
import type { EngineName } from './engine/engine.ts'
import type { OpenedEngine, OpenOptions } from './engine/open.ts'
import { LandlockIsolation } from './landlock/isolation.ts'
import { LocalDriver } from './local/driver.ts'
import type { LocalDriverOptions, LocalIsolation } from './local/isolation.ts'
import type { ProvidedNetwork } from './local/network/server-network.ts'
import { LocalWorkspace } from './local/workspace.ts'
import { NoIsolation } from './none/isolation.ts'
import type { OutboundSettings, SandboxPaths } from './sandbox.ts'
import { SeatbeltIsolation } from './seatbelt/isolation.ts'
import type { Workspace } from './workspace.ts'

/** What berth provides to every server, wherever it runs. */
export interface ServerProvisions {
  /** Returns the URL at which commands reach berth's API; null, as by default, if there is none. */
  baseUrl?(network: 'own' | 'shared'): string | null
  /** Returns further variables of every command of a server. */
  environment?(serverId: string, paths: SandboxPaths): Readonly<Record<string, string>>
  /** Prepares a server's caches, before its first command. */
  prepareCaches?(serverId: string, caches: Workspace): Promise<void>
  /** Opens what berth provides inside a server's own network; called before the server's first command. */
  provide?(serverId: string, network: ProvidedNetwork): void | Promise<void>
}

/** Provides nothing to servers. */
export const NO_PROVISIONS: Required<ServerProvisions> = {
  baseUrl: () => null,
  environment: () => ({}),
  prepareCaches: async () => {},
  provide() {},
}

/** What compute needs from the process that runs it. */
export interface ComputeDependencies extends ServerProvisions {
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
    ...NO_PROVISIONS,
    ...options,
    workspace: (dir, caches) => new LocalWorkspace(dir, undefined, undefined, caches),
  }
  const isolations: LocalIsolation[] =
    process.platform === 'darwin'
      ? [new SeatbeltIsolation(all)]
      : [new BubblewrapIsolation(all), new LandlockIsolation(all)]
  return [...isolations, new NoIsolation(all)].map((isolation) => new LocalDriver(isolation, all))
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
  /** What a person should know of it: ways in which it isolates less than its name promises, or what it lacks. */
  notes: readonly string[]
  /** The stronger ones, which were tried and cannot be used. */
  rejected: RejectedDriver[]
}

/** What chooses a driver. */
export interface DriverChoice {
  readonly compute: Config['compute']
  readonly isolation: Config['isolation']
  /** The drivers of this machine, strongest isolation first. */
  readonly local: readonly ComputeDriver[]
  /** Makes the driver of an engine. */
  open(compute: EngineName): Promise<OpenedEngine>
}

/** Milliseconds in which an engine has to respond that nobody has asked for. */
const FOUND_MS = 300

/**
 * Returns the driver that is configured. With `auto` that is the strongest isolation of this machine, else a Docker engine
 * at a socket of this machine that responds at once and has the image of servers, else Seatbelt of macOS. Servers without
 * isolation have to be asked for.
 *
 * @throws StartupError if that one, or none at all, can be used
 */
export async function selectDriver(choice: DriverChoice): Promise<SelectedDriver> {
  const { compute, isolation, local, open } = choice
  const rejected: RejectedDriver[] = []
  if (compute === 'docker' || compute === 'kubernetes') {
    const { driver } = await open(compute)
    const selected = await probed(driver, rejected)
    if (selected !== null) return selected
    throw cannotBeUsed(rejected, `--compute ${compute}`, 'Or choose --compute local.')
  }
  const isWanted = ({ name }: ComputeDriver): boolean =>
    isolation === 'auto' ? name !== 'none' && name !== 'seatbelt' : name === isolation
  for (const driver of local.filter(isWanted)) {
    const selected = await probed(driver, rejected)
    if (selected !== null) return selected
  }
  if (isolation !== 'auto') {
    if (rejected.length === 0) throw new StartupError(`There is no isolation "${isolation}" on this system.`)
    throw cannotBeUsed(rejected, `Isolation ${isolation}`, 'Or choose --isolation auto.')
  }
  const found = compute === 'auto' ? await foundEngine(open) : null
  const weakest = local.filter(({ name }) => name === 'seatbelt')
  for (const driver of found === null ? weakest : [found, ...weakest]) {
    const selected = await probed(driver, rejected)
    if (selected !== null) return selected
  }
  const reasons = rejected.map(({ name, reason, remedy }) => `${name}: ${reason} ${remedy}`)
  throw new StartupError(
    `Nothing isolates servers here. ${reasons.join(' ')} Or start a Docker engine and run "berth engine prepare". Or let commands do what you may, on your files: --compute local --isolation none.`,
  )
}

/** Returns the driver if it can be used; otherwise adds it to the rejected ones, and returns null. */
async function probed(driver: ComputeDriver, rejected: RejectedDriver[]): Promise<SelectedDriver | null> {
  const probe = await driver.probe()
  if (!probe.available) {
    rejected.push({ name: driver.name, reason: probe.reason, remedy: probe.remedy })
    return null
  }
  const { network, enforced, notes = [] } = probe
  return { driver, network, enforced, notes, rejected: [...rejected] }
}

const cannotBeUsed = (rejected: RejectedDriver[], what: string, otherwise: string): StartupError => {
  const [last] = rejected.slice(-1)
  return new StartupError(`${what} cannot be used here: ${last?.reason} ${last?.remedy} ${otherwise}`)
}

/** Returns the Docker engine of this machine if it responds at once and has the image of servers; null otherwise. */
async function foundEngine(open: DriverChoice['open']): Promise<ComputeDriver | null> {
  try {
    const { driver, isLocal, hasImage } = await open('docker')
    return isLocal && (await within(FOUND_MS, hasImage(), false)) ? driver : null
  } catch {
    // There is none, or it does not respond: nobody has asked for it.
    return null
  }
}

/** Loads and makes the driver of an engine. @throws StartupError for settings that cannot be used */
export async function openEngine(compute: EngineName, options: OpenOptions): Promise<OpenedEngine> {
  const found =
    compute === 'kubernetes'
      ? await (await import('./kubernetes/open.ts')).openKubernetes(options)
      : (await import('./docker/open.ts')).openDocker(options)
  const { withDriver } = await import('./engine/open.ts')
  return withDriver(found, options)
}

/** Tries every driver, to show what this machine offers. */
export async function probeDrivers(
  drivers: readonly ComputeDriver[],
): Promise<Array<{ name: DriverName; probe: Probe }>> {
  return Promise.all(drivers.map(async (driver) => ({ name: driver.name, probe: await driver.probe() })))
}
