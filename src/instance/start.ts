/**
 * One running berth. `startBerth` takes the data directory, listens, and makes a generation: the services and the API
 * over one state. A reset or a restored snapshot ends a generation and begins another (`generation.ts`, `state.ts`); the
 * files of servers that are not in the data directory go with it (`carried-files.ts`). `take-data.ts` takes the data
 * directory, and `upgrade.ts` saves its state before a newer berth changes the database.
 *
 * A request comes in by the listener of src/http and passes `request-gate.ts`, which holds it during a reset and waits
 * a second for open ones at a stop; `dispatch` of `api.ts` gives it to the Elysia app of its group of routes, which is
 * made at the first request for it. `route-groups.ts` lists these groups.
 *
 * To add a service, create it in `services.ts`, in the function of the part that it belongs to; each part gets those
 * before. What begins and ends with the instance implements `Lifecycle` of src/runtime/service.ts, and has its place
 * in `start-order.ts`.
 */

import {
  type ComputeDependencies,
  type ComputeDriver,
  type DriverChoice,
  type IsolationName,
  kindOf,
  loadDrivers,
  type OpenPlace,
  type SelectedDriver,
  type ServerProvisions,
} from '../compute/compute.ts'
import type { ComputeName } from '../config/compute.ts'
import type { Config } from '../config/config.ts'
import type { OperationCommands } from '../contract/reference/routes.ts'
import { StartupError } from '../errors.ts'
import { isBlockedByBrowsers } from '../http/host.ts'
import { logged, type Respond } from '../http/request-log.ts'
import type { AccountPlan } from '../resources/accounts/model.ts'
import { DEFAULT_PLAN } from '../resources/accounts/plan.ts'
import type { WebhookOverrides } from '../resources/webhooks/deliveries.ts'
import { type ClockOptions, machineNow, SteerableClock } from '../runtime/clock.ts'
import { messageOf } from '../runtime/error-info.ts'
import { homeDirectory } from '../runtime/home-directory.ts'
import type { Logger } from '../runtime/logger.ts'
import { seededRandom, systemRandom } from '../runtime/random.ts'
import { SignInLinks } from '../signin/sign-in.ts'
import type { DataDirectory } from '../storage/data-directory.ts'
import { SCHEMA, schemaOf } from '../storage/database.ts'
import { hasServerArchives } from '../storage/state.ts'
import type { Fixtures, RunRecord } from '../testing/testing.ts'
import { MainPort } from './main-port.ts'
import { refuseLostDatabase, refuseLostDatabaseOfEngine, startFailure } from './start-failure.ts'
import type { InstanceState } from './state.ts'
import { takeData } from './take-data.ts'

/** How long the recovery leaves the processor to the first requests; one that needs it does not wait for it. */
const RECOVERY_DELAY_MS = 15

/**
 * Milliseconds after which the just-in-time compiler no longer waits for 16 times as many calls as usual
 * (`STARTUP_JIT_POLICY` of the build). Until then most code runs a few times, and compiling it costs more than it saves.
 */
const COLD_MS = 1_000

/** How long the sign-in link of the ready line is valid. */
const START_LINK_MS = 3_600_000

/** Dependencies that the process provides. */
export interface StartDependencies extends Pick<ComputeDependencies, 'self' | 'path'> {
  version: string
  logger: Logger
  /** Milliseconds since the process started, by a clock that never jumps. */
  sinceStartMs: () => number
  /** Directory for ephemeral data directories. */
  temporaryDir?: string
  /** The variables that the process was started with. */
  environment: Readonly<Record<string, string | undefined>>
  /** Returns the command lines that call each operation, by its id, for the reference. Without it there are none. */
  commands?: OperationCommands
  /** Replaces the machine's clock, or the one for `--freeze`. */
  clock?: SteerableClock
  webhooks?: WebhookOverrides
  /** Milliseconds without a byte after which a request's body is given up. */
  bodySilenceMs?: number
  /** Resolves when the process must end; a start that waits for fixtures is then aborted. */
  stopRequested?: Promise<void>
  /** Records what happens, for a report. */
  record?: RunRecord
}

/** The content of the ready line, in its order. */
export interface ReadyInfo {
  version: string
  pid: number
  base_url: string
  mcp_url: string
  dashboard_url: string
  docs_url: string
  /** Null if the first key was deleted and no other was given. */
  api_key: string | null
  admin_token: string
  data_dir: string
  /** What runs servers, and what separates them. */
  compute: ComputeName
  isolation: IsolationName
  /** Ids of directories below `servers` that no server of the database owns. They stay until a person removes them. */
  kept: readonly string[]
  started_in_ms: number
  /** Signs a browser in, once and within the hour: as the keys, a credential. */
  sign_in_url: string
}

/** A berth that runs. */
export interface Berth {
  readonly info: ReadyInfo
  /** What runs its servers. */
  readonly selected: SelectedDriver
  /** Resolves when the servers that ran at the last stop run again. */
  readonly recovered: Promise<void>
  /** Ends every process, closes everything and removes an ephemeral directory. Further calls are harmless. */
  stop(): Promise<void>
  /** For a process that exits on the spot: removes an ephemeral directory, as far as that can be done at once. */
  abandon(): void
}

/** Reports a start that was aborted because the process must end. */
export class StartStopped extends StartupError {}

/** Has something released when berth stops or its start fails. What was added last is released first. */
type OnRelease = (release: () => void | Promise<void>) => void

/**
 * Starts a berth: data directory, compute driver, the instance with its state, HTTP. Several can run in one process,
 * each on its own directory.
 *
 * @throws StartupError if it cannot start; everything acquired is released
 */
export async function startBerth(config: Config, dependencies: StartDependencies): Promise<Berth> {
  const acquired = new AsyncDisposableStack()
  const onRelease: OnRelease = (release) =>
    acquired.defer(async () => {
      try {
        await release()
      } catch (error) {
        dependencies.logger.error('something could not be given back at the stop', { error })
      }
    })
  try {
    return await start(config, dependencies, onRelease, () => acquired.disposeAsync())
  } catch (error) {
    await acquired.disposeAsync()
    throw await startFailure(error, config.dataDir)
  }
}

async function start(
  config: Config,
  dependencies: StartDependencies,
  onRelease: OnRelease,
  release: () => Promise<void>,
): Promise<Berth> {
  const { logger, version, environment } = dependencies
  const { fixtures, clockStart } = await readFixturesFiles(config, environment)
  const clock = dependencies.clock ?? new SteerableClock(clockStart)
  const plan = await planOf(config)
  const data = await takeData(config, dependencies, onRelease)
  const { dataDirectory } = data
  await refuseLostDatabase(dataDirectory)
  if (data.clock && config.freeze === null) await clock.begin(data.clock)

  // Before most of the modules are loaded: Bun collects garbage when it begins to listen, and there is little yet.
  const mainPort = new MainPort(config)
  const { listener } = mainPort
  onRelease(() => listener.close())
  const [{ localDrivers, openEngine, selectDriver }, { Packages }] = await Promise.all([
    loadDrivers(),
    import('../hosting/registries/packages.ts'),
  ])
  const packages = new Packages({
    dataDir: dataDirectory.path,
    registry: config.npmRegistry,
    machine: { environment, home: homeDirectory(), etc: '/etc' },
    // These credentials appear nowhere, so they need not be reproducible.
    random: systemRandom,
    logger,
    now: machineNow,
  })
  onRelease(() => packages.stop())
  // The probe runs a process. Meanwhile the rest is loaded.
  const forServers: Required<ServerProvisions> = {
    baseUrl: (network) => mainPort.urlForServers(network),
    environment: (serverId, paths) => packages.commandEnvironment(serverId, paths),
    prepareCaches: (serverId, caches) => packages.prepareCaches(serverId, caches),
    provide: async (_, network) => {
      const { port } = packages
      if (port !== null) network.forward(port, { port })
      // In networks of this machine they are a matter of outbound control.
      if (!(await selecting).driver.keepsFilesHere)
        for (const machinePort of config.serverHosts) network.forward(machinePort, { port: machinePort })
      await mainPort.provide(network)
    },
  }
  const outbound = { mode: config.outbound, hosts: config.outboundHosts }
  const local = localDrivers({
    ...dependencies,
    ...forServers,
    ...{ variables: environment, dataDir: dataDirectory.path, outbound },
    machinePorts: config.serverHosts,
    projectPorts: config.projectPorts,
    allowUnixSockets: config.allowUnixSockets,
  })
  const forEngines = {
    ...forServers,
    ...{ logger, version, variables: environment, dataDir: dataDirectory.path, outbound },
    ephemeral: data.isEphemeral,
  }
  const openPlace: OpenPlace = async ({ compute, address }) => {
    // Files of servers of this machine are the same for each isolation.
    if (compute === 'local') return local[0] as ComputeDriver
    const engine = address === null ? config.engine : { ...config.engine, address }
    return (await openEngine(compute, { ...forEngines, config: { ...config, engine } })).driver
  }
  const open: DriverChoice['open'] = (compute) => openEngine(compute, { ...forEngines, config })
  const selecting = selectDriver({ ...config, local, open })
  onRelease(async () => {
    const selected = await selecting.catch(() => null)
    await selected?.driver.close?.()
  })
  selecting.catch(() => {})
  onRelease(() => clock.stop())
  await refuseLostDatabaseOfEngine(dataDirectory, selecting)
  await upgrade(dataDirectory, { version, clock, logger, selecting })
  if (!data.isEphemeral && dataDirectory.readVersion() !== version) dataDirectory.writeVersion(version)

  const links = new SignInLinks({ clock, random: systemRandom })
  const { InstanceState } = await import('./state.ts')
  const selected = await selecting
  await placeServers(selected, config, plan, dataDirectory)
  const { rngSeed } = config
  const { commands = async () => new Map<string, string>() } = dependencies
  const instance = new InstanceState({
    config,
    version,
    logger,
    clock,
    dataDirectory,
    selected,
    openPlace,
    plan,
    heartbeat: data.heartbeat,
    fixtures,
    webhooks: dependencies.webhooks,
    bodySilenceMs: dependencies.bodySilenceMs,
    localWebhooks: { allowed: config.allowLocalWebhooks },
    environment,
    packages,
    randomFor: (purpose) => (rngSeed === null ? systemRandom : seededRandom(rngSeed, purpose)),
    baseUrl: mainPort.url,
    route: (routes) => mainPort.route(routes),
    record: dependencies.record ?? null,
    listener,
    links,
    commands,
  })
  onRelease(() => instance.close())
  // Before a request gets in.
  await instance.generation.recover()
  const { kept } = instance.generation.services.servers.lifecycle
  for (const id of kept) {
    logger.warn(
      `no server of the database owns ${dataDirectory.path}/servers/${id}, which is kept; "berth doctor --leaks --fix-kept ${id}" removes it`,
    )
  }
  reportSelection(selected, logger)
  for (const note of config.notes) logger.warn(note)
  if (isBlockedByBrowsers(config.port)) {
    logger.warn(
      `browsers refuse port ${config.port}, and with it the dashboard and sign-in; start berth with another --port.`,
    )
  }
  instance.sweep()
  listener.open(responder(instance, config, dependencies))
  setTimeout(() => Bun.unsafe.setJITPolicy(1), COLD_MS).unref()
  onRelease(async () => {
    // Refuses new requests while the commands of open ones are ended, so these get their responses.
    await instance.stop(listener.drain())
    await listener.close()
  })

  const baseUrl = mainPort.url
  const { compute, isolation } = kindOf(selected.driver.name)
  dataDirectory.writeInstance({ pid: process.pid, base_url: baseUrl, version, isolation })
  if (!data.isEphemeral) dataDirectory.writePort(listener.port)
  const opening = openInstance(instance, fixtures !== null)
  // Fixtures are complete before the ready line.
  if (fixtures) await orStopRequested(opening, dependencies.stopRequested)
  const recovered = opening
    .then(() => data.removeAbandoned())
    .catch((error) => logger.error('servers of before could not be brought up again', { error }))

  data.keep()
  let stopping: Promise<void> | undefined
  return {
    info: {
      version,
      pid: process.pid,
      base_url: baseUrl,
      mcp_url: `${baseUrl}/mcp`,
      dashboard_url: `${baseUrl}/`,
      docs_url: `${baseUrl}/docs`,
      ...instance.generation.credentials,
      data_dir: dataDirectory.path,
      compute,
      isolation,
      kept,
      started_in_ms: Math.round(dependencies.sinceStartMs()),
      sign_in_url: `${baseUrl}${links.issue({ accountId: null }, START_LINK_MS).path}`,
    },
    selected,
    recovered,
    stop: () => {
      if (stopping === undefined) dataDirectory.markEnding()
      stopping ??= release()
      return stopping
    },
    abandon: () => data.abandon(),
  }
}

/**
 * Brings up what ran before and applies fixtures: at once if there are any, otherwise after the ready line and the first
 * response.
 */
async function openInstance(instance: InstanceState, hasFixtures: boolean): Promise<void> {
  if (!hasFixtures) await Bun.sleep(RECOVERY_DELAY_MS)
  await instance.open()
}

/** Returns the function that responds to requests, with a log if requested. */
const responder = (instance: InstanceState, { logLevel }: Config, { logger }: StartDependencies): Respond =>
  logLevel === 'debug' ? logged(instance.respond, logger) : instance.respond

/** Saves the state of another version's schema before it is changed. @throws StartupError if that fails */
async function upgrade(
  dataDirectory: DataDirectory,
  {
    selecting,
    ...options
  }: { version: string; clock: SteerableClock; logger: Logger; selecting: Promise<SelectedDriver> },
): Promise<void> {
  const schema = schemaOf(dataDirectory.database)
  if (schema === null || schema === SCHEMA) return
  const { prepareUpgrade } = await import('./upgrade.ts')
  const { driver } = await selecting
  await prepareUpgrade({ ...options, dataDirectory, schema, driver })
}

/**
 * Gives servers their files that a snapshot has brought into the data directory.
 *
 * @throws StartupError if that fails; the next start tries it again
 */
async function placeServers(
  { driver }: SelectedDriver,
  { snapshot }: Config,
  plan: AccountPlan,
  { path }: DataDirectory,
): Promise<void> {
  if (snapshot === null && !hasServerArchives(path)) return
  const { unpackServers } = await import('./carried-files.ts')
  try {
    await unpackServers(driver, path, { plan, isWhole: snapshot !== null })
  } catch (error) {
    throw new StartupError(`The files of servers could not be put where they belong: ${messageOf(error)}`)
  }
}

/** Reads the fixtures files. Returns null without any, and then loads none of the reader's modules. */
async function readFixturesFiles(
  { fixtures: paths, freeze }: Config,
  environment: StartDependencies['environment'],
): Promise<{ fixtures: Fixtures | null; clockStart: ClockOptions }> {
  if (paths.length === 0) return { fixtures: null, clockStart: { frozenAt: freeze } }
  const { readFixtures } = await import('../testing/seed/read.ts')
  const { clockStart } = await import('../testing/seed/read.ts')
  const fixtures = readFixtures(paths, environment)
  return { fixtures, clockStart: clockStart(freeze, fixtures.clock[0]?.value ?? null) }
}

/** Returns the plan of accounts without one of their own. @throws StartupError if the configured one is none */
async function planOf({ plan }: Config): Promise<AccountPlan> {
  if (plan === null) return DEFAULT_PLAN
  const { configuredPlan } = await import('../resources/accounts/configured-plan.ts')
  return configuredPlan(plan)
}

/**
 * Waits for the start.
 *
 * @throws StartStopped if the process must end first
 */
async function orStopRequested(
  opening: Promise<void>,
  stopRequested: Promise<void> | undefined,
): Promise<void> {
  const stopped = stopRequested?.then(() => {
    throw new StartStopped('berth was stopped while it started.')
  })
  await Promise.race(stopped ? [opening, stopped] : [opening])
}

function reportSelection({ rejected, driver, notes }: SelectedDriver, logger: Logger): void {
  for (const { name, reason, remedy } of rejected) {
    logger.warn(`${name} isolation is not available, ${driver.name} is used: ${reason} ${remedy}`)
  }
  const isLocal = kindOf(driver.name).compute === 'local'
  for (const note of notes)
    logger.warn(isLocal ? `${driver.name} isolation is weaker here: ${note}` : `${driver.name}: ${note}`)
}
