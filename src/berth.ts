import { tmpdir } from 'node:os'
import { instancePlan } from './accounts/plan.ts'
import { createApi } from './app.ts'
import { type ComputeSurroundings, localDrivers } from './compute/drivers.ts'
import { ElectedDriver } from './compute/elected.ts'
import { type SelectedDriver, selectDriver } from './compute/select.ts'
import type { Config, Isolation } from './config.ts'
import { isControlRequest } from './control/path.ts'
import type { Fixtures } from './fixtures/fixtures.ts'
import { type Listener, listen } from './http/listener.ts'
import { type Answer, logged } from './http/request-log.ts'
import type { KeysService } from './resources/keys/service.ts'
import type { WebhookSurroundings } from './resources/webhooks/compose.ts'
import { machineNow, SteerableClock } from './runtime/clock.ts'
import type { Logger } from './runtime/logger.ts'
import { once } from './runtime/once.ts'
import { base62, type Random, seededRandom, systemRandom } from './runtime/random.ts'
import { createServices } from './services.ts'
import { openDatabase } from './storage/database.ts'
import { makeEphemeral, removeAbandoned } from './storage/ephemeral.ts'
import { type DataFolder, takeDataFolder } from './storage/folder.ts'
import { openCipher } from './storage/master-key.ts'

/** How long open requests may take to be answered when their commands have ended. */
const STOP_GRACE_MS = 1_000

/** How long the recovery leaves the processor to the first requests; one that needs it does not wait for it. */
const RECOVERY_DELAY_MS = 15

/** What the process around berth provides. */
export interface Surroundings extends Pick<ComputeSurroundings, 'self' | 'path'> {
  version: string
  logger: Logger
  /** Milliseconds since the process started, by a clock that never jumps. */
  sinceStartMs: () => number
  /** Where ephemeral folders are made. */
  temporaryDir?: string
  /** The variables that the process was started with. */
  environment: Readonly<Record<string, string | undefined>>
  /** In place of the machine's clock, or the one that `--freeze` asks for. */
  clock?: SteerableClock
  webhooks?: WebhookSurroundings
}

/** What is told when the service answers requests, in the order of the ready line. */
export interface ReadyInfo {
  version: string
  pid: number
  base_url: string
  mcp_url: string
  dashboard_url: string
  docs_url: string
  /** Null where the first key was deleted and none was given in its place. */
  api_key: string | null
  admin_token: string
  data_dir: string
  isolation: Isolation
  started_in_ms: number
}

/** A berth that runs. */
export interface Berth {
  readonly info: ReadyInfo
  /** Resolves when the servers that ran at the last stop run again. */
  readonly recovered: Promise<void>
  /** Ends every process, closes everything and, where it is ephemeral, removes the folder. Calling it again is harmless. */
  stop(): Promise<void>
  /** For a process that exits on the spot: removes an ephemeral folder, as far as that can be done at once. */
  abandon(): void
}

/** What has been taken so far and must be given back, latest first. */
type Release = () => void | Promise<void>

/**
 * Composes and starts a berth: data folder, database, compute driver, services, HTTP. Two of them run
 * side by side in one process on folders of their own.
 *
 * @throws StartupError where it cannot start; whatever was taken is given back
 */
export async function startBerth(config: Config, surroundings: Surroundings): Promise<Berth> {
  const releases: Release[] = []
  const release = async (): Promise<void> => {
    for (let next = releases.pop(); next; next = releases.pop()) {
      try {
        await next()
      } catch (error) {
        surroundings.logger.error('something could not be given back at the stop', { error })
      }
    }
  }
  try {
    return await compose(config, surroundings, releases, release)
  } catch (error) {
    await release()
    throw error
  }
}

async function compose(
  config: Config,
  surroundings: Surroundings,
  releases: Release[],
  release: () => Promise<void>,
): Promise<Berth> {
  const { logger, version, sinceStartMs } = surroundings
  const fixtures = await fixturesOf(config)
  const clock = surroundings.clock ?? new SteerableClock({ frozenAt: config.freeze })
  const { rngSeed } = config
  const plan = instancePlan(config.plan)
  const randomFor = (purpose: string) => (rngSeed === null ? systemRandom : seededRandom(rngSeed, purpose))

  const temporaryDir = surroundings.temporaryDir ?? tmpdir()
  const ephemeral = config.ephemeral ? makeEphemeral(temporaryDir) : null
  if (ephemeral) releases.push(() => ephemeral.remove())
  const folder = takeDataFolder(ephemeral?.path ?? config.dataDir)
  releases.push(() => folder.release())
  // The probe runs a process: it goes on while the database opens and the app is built.
  const selecting = selectDriver(
    config.isolation,
    localDrivers({ ...surroundings, dataDir: folder.path, logger }),
  )
  selecting.catch(() => {})
  const database = openDatabase(folder.database)
  releases.push(() => database.close())
  const cipher = openCipher({ queries: database.queries, folder, given: config.masterKey })
  releases.push(() => clock.stop())

  let listener: Listener | undefined
  const services = createServices({
    version,
    logger,
    clock,
    randomFor,
    database,
    cipher,
    compute: new ElectedDriver(selecting),
    plan,
    idleTimeoutMs: config.idleTimeoutMs,
    allowLocalWebhooks: config.allowLocalWebhooks,
    webhooks: surroundings.webhooks,
    agents: config,
    hosting: {
      host: config.host,
      publicHost: config.publicHost,
      ports: config.projectPorts,
      sourceFolders: config.sourceFolders,
      allowLocalSources: config.allowLocalSources,
      npmRegistry: config.npmRegistry,
      dataDir: folder.path,
      environment: surroundings.environment,
      route: (routes) => listener?.route(routes),
    },
    scenarios: fixtures?.scenarios ?? [],
  })
  const { keys, servers, hosting, tasks, builds, deliveries } = services
  releases.push(() => keys.stop())
  const credentials = firstCredentials(config, folder, keys, randomFor('admin_token'))
  releases.push(() => deliveries.stop())

  const host = { bound: config.host, publicHost: config.publicHost }
  const api = createApi(services, host)
  const closing = new AbortController()
  let ready = false
  const startedAt = performance.now()
  const control = once(async () => {
    const { createControlApp } = await import('./control/app.ts')
    return createControlApp({
      services,
      host,
      guard: {
        adminToken: credentials.admin_token,
        exposed: config.exposeControl,
        addressOf: (request) => listener?.addressOf(request) ?? null,
      },
      instance: {
        version,
        enforced: async () => (await selecting).enforced(),
        uptimeMs: () => Math.round(performance.now() - startedAt),
        isReady: () => ready,
      },
      stopping: closing.signal,
    })
  })
  // While the probe runs, and before anybody can ask.
  await tasks.recover()
  const selected = await selecting
  // What builds have left lies in workspaces, which only the driver knows.
  await builds.recover()
  reportSelection(selected, logger)
  const answer: Answer = (request) =>
    isControlRequest(request) ? control().then((app) => app.handle(request)) : api.handle(request)
  const listening = listen(
    config.host,
    config.port,
    config.logLevel === 'debug' ? logged(answer, logger) : answer,
  )
  listener = listening
  releases.push(async () => {
    // No new request comes in while the commands of the open ones are ended, which lets these answer.
    const drained = listening.drain()
    closing.abort()
    await tasks.stop()
    await builds.stop()
    await hosting.stop()
    await servers.shutDown()
    await builds.close()
    await hosting.close()
    await Promise.race([drained, Bun.sleep(STOP_GRACE_MS)])
    await listening.close()
  })

  const baseUrl = urlOf(config.host, listening)
  folder.writeInstance({ pid: process.pid, base_url: baseUrl, version, isolation: selected.driver.name })
  // After whoever waits for the start has been told and has had an answer.
  const recovered = Bun.sleep(RECOVERY_DELAY_MS)
    .then(() => {
      deliveries.start()
      return hosting.open()
    })
    .then(() => servers.recover())
    .then(() => hosting.resume())
    .then(() => builds.resume())
    .then(() => credentials.api_key && keys.keepCopy(credentials.api_key))
    .then(() => ephemeral && removeAbandoned(temporaryDir, machineNow()))
    .then(
      () => {
        ready = true
      },
      (error) => logger.error('servers of before could not be brought up again', { error }),
    )

  let stopping: Promise<void> | undefined
  return {
    info: {
      version,
      pid: process.pid,
      base_url: baseUrl,
      mcp_url: `${baseUrl}/mcp`,
      dashboard_url: `${baseUrl}/`,
      docs_url: `${baseUrl}/docs`,
      ...credentials,
      data_dir: folder.path,
      isolation: selected.driver.name,
      started_in_ms: Math.round(sinceStartMs()),
    },
    recovered,
    stop: () => {
      stopping ??= release()
      return stopping
    },
    abandon: () => ephemeral?.remove(),
  }
}

/** What the fixtures files say; null where none is given, and then nothing of their reader is loaded. */
async function fixturesOf({ fixtures }: Config): Promise<Fixtures | null> {
  if (fixtures.length === 0) return null
  const { readFixtures } = await import('./fixtures/fixtures.ts')
  return readFixtures(fixtures)
}

/** The first key and the admin token: those of an earlier start, or new ones, kept for the next. */
function firstCredentials(config: Config, folder: DataFolder, keys: KeysService, random: Random) {
  const kept = folder.readCredentials()
  const credentials = {
    api_key: keys.ensureFirst(config.apiKey, kept?.api_key),
    admin_token: kept?.admin_token ?? `admin_${base62(random, 43)}`,
  }
  if (credentials.api_key !== kept?.api_key || credentials.admin_token !== kept.admin_token) {
    folder.writeCredentials(credentials)
  }
  return credentials
}

function reportSelection({ rejected, driver, notes }: SelectedDriver, logger: Logger): void {
  for (const { name, reason, remedy } of rejected) {
    logger.warn(`${name} isolation is not available, ${driver.name} is used: ${reason} ${remedy}`)
  }
  for (const note of notes) logger.warn(`${driver.name} isolation is weaker here: ${note}`)
}

function urlOf(host: string, listener: Listener): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `http://${name}:${listener.port}`
}
