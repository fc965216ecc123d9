import type { Compute, Connection } from '../compute/driver.ts'
import type { Config } from '../config/config.ts'
import type { OperationIndex } from '../contract/operation-index.ts'
import type { HostRoutes } from '../http/listener.ts'
import type { Plan } from '../resources/accounts/plan.ts'
import type { FirstIds } from '../resources/keys/service.ts'
import type { WebhookSurroundings } from '../resources/webhooks/compose.ts'
import type { SteerableClock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { once } from '../runtime/once.ts'
import { base62, type Random } from '../runtime/random.ts'
import type { SignInLinks } from '../signin/session/links.ts'
import { type Database, openDatabase } from '../storage/database.ts'
import type { CredentialsFile, DataFolder } from '../storage/folder.ts'
import { openCipher } from '../storage/master-key.ts'
import type { ControlApp } from '../testing/api/app.ts'
import type { Fixtures } from '../testing/seed/fixtures.ts'
import { createApi } from './api.ts'
import { createServices, type Services } from './services.ts'

/** What stays when one generation follows another. */
export interface GenerationParts {
  config: Config
  version: string
  logger: Logger
  clock: SteerableClock
  folder: DataFolder
  compute: Compute
  /** Settles when the compute driver can be asked. */
  driverSelected: Promise<unknown>
  plan: Plan
  fixtures: Fixtures | null
  webhooks: WebhookSurroundings | undefined
  environment: Readonly<Record<string, string | undefined>>
  randomFor: (purpose: string) => Random
  /** The address of the main port, without a slash at the end, once it listens. */
  baseUrl: () => string
  /** Has the main port ask these first; null for nobody any more. */
  route: (routes: HostRoutes | null) => void
  /** Has the connection of a request closed without an answer, seconds later. */
  expire: (request: Request) => void
  /** The connection that a request came on, or null where it is gone. */
  connectionOf: (request: Request) => Connection | null
  /** Links that sign a browser in, in whatever state. */
  links: SignInLinks
  /** The control API over services; asked for at its first request. */
  control: ControlMaker
}

/** What the control API of a generation works on. */
export interface Controlled {
  services: Services
  credentials: CredentialsFile
  /** The operations of the API. */
  operations: () => Promise<OperationIndex>
  /** Fires when the generation ends: streams end too. */
  stopping: AbortSignal
}

/** Makes the control API of a generation. */
export type ControlMaker = (controlled: Controlled) => Promise<ControlApp>

/**
 * Everything that is composed over one state of the data folder: database, services, API. A start begins one; a
 * reset and a restored snapshot end it and begin the next. What lives in memory goes with it, so that nothing has to
 * be told to begin anew.
 */
export class Generation {
  readonly services: Services
  readonly credentials: CredentialsFile
  readonly #parts: GenerationParts
  readonly #database: Database
  readonly #api: ReturnType<typeof createApi>
  readonly #control: () => Promise<ControlApp>
  readonly #ended = new AbortController()
  #routed = false
  #opening: Promise<void> | null = null
  #ready = false

  /**
   * Opens the state and composes what works on it; nothing runs yet.
   *
   * @param first ids that are to be the first ones where the state is empty
   * @throws StartupError where the state cannot be used
   */
  constructor(parts: GenerationParts, first?: FirstIds) {
    this.#parts = parts
    const { config, version, logger, clock, folder, compute, plan, webhooks, environment, randomFor } = parts
    this.#database = openDatabase(folder.database)
    try {
      const { queries } = this.#database
      this.services = createServices({
        version,
        logger,
        clock,
        randomFor,
        repeatable: config.rngSeed !== null,
        database: this.#database,
        cipher: openCipher({ queries, folder, given: config.masterKey }),
        compute,
        plan,
        idleTimeoutMs: config.idleTimeoutMs,
        allowLocalWebhooks: config.allowLocalWebhooks,
        webhooks,
        agents: config,
        hosting: {
          host: config.host,
          publicHost: config.publicHost,
          ports: config.projectPorts,
          sourceFolders: config.sourceFolders,
          allowLocalSources: config.allowLocalSources,
          npmRegistry: config.npmRegistry,
          dataDir: folder.path,
          environment,
          route: (routes) => {
            this.#routed = true
            parts.route(routes)
          },
        },
        journalSize: config.journalSize,
        scenarios: parts.fixtures?.scenarios ?? [],
        links: parts.links,
        expire: parts.expire,
        connectionOf: parts.connectionOf,
      })
      this.credentials = firstCredentials(parts, this.services, first)
    } catch (error) {
      this.#database.close()
      throw error
    }
    this.#api = createApi(this.services, { bound: config.host, publicHost: config.publicHost })
    const operations = once(async () => {
      const { operationIndex } = await import('../contract/operation-index.ts')
      return operationIndex(await this.#api.whole())
    })
    const { services, credentials } = this
    this.#control = once(() =>
      parts.control({ services, credentials, operations, stopping: this.#ended.signal }),
    )
  }

  /** Whether what there was before runs again, and fixtures are applied. */
  get ready(): boolean {
    return this.#ready
  }

  /** Answers a request for the API. Never throws. */
  answer(request: Request): Response | Promise<Response> {
    return this.#api.handle(request)
  }

  /** Answers a request for the control API. Never throws. */
  async control(request: Request): Promise<Response> {
    return (await this.#control()).handle(request)
  }

  /** Says of what a killed berth has left unfinished what became of it: before anybody can ask. */
  async prepare(): Promise<void> {
    await this.services.tasks.recover()
    // What builds have left lies in workspaces, which only the driver knows.
    await this.#parts.driverSelected
    await this.services.builds.recover()
  }

  /**
   * Brings up again what ran at the last stop, then applies the fixtures. Resolves when that is done; called again,
   * it waits for the same.
   *
   * @param fixtures those that are to hold; null leaves the state as it is
   * @throws StartupError where fixtures cannot be applied
   */
  open(fixtures: Fixtures | null): Promise<void> {
    this.#opening ??= this.#open(fixtures)
    return this.#opening
  }

  /** Gives up what `open` is still to do. */
  abandon(): void {
    this.#ended.abort()
  }

  /** Ends all that runs; what is asked for from now on fails. Open requests get their answers. */
  async stop(): Promise<void> {
    const { faults, tasks, builds, hosting, servers } = this.services
    this.#ended.abort()
    faults.stop()
    await tasks.stop()
    await builds.stop()
    await hosting.stop()
    await servers.shutDown()
    await builds.close()
    await hosting.close()
    if (this.#routed) this.#parts.route(null)
  }

  /** Lets go of the state, when it is stopped and the open requests are answered. */
  async close(): Promise<void> {
    const { deliveries, keys, signIn } = this.services
    await this.#opening?.catch(() => {})
    await deliveries.stop()
    keys.stop()
    signIn.stop()
    this.#database.close()
  }

  /** Resolves when folders that no server owns are removed, where that is under way. */
  swept(): Promise<void> {
    return this.services.servers.swept()
  }

  /** The ids of the first account, and of its first key where that stands. */
  get firstIds(): FirstIds | undefined {
    return this.services.keys.firstIds(this.credentials.api_key)
  }

  /** Writes a copy of the database to a path where nothing is. */
  copyDatabase(path: string): void {
    this.#database.copyTo(path)
  }

  async #open(fixtures: Fixtures | null): Promise<void> {
    const { deliveries, hosting, servers, builds, keys } = this.services
    const steps = [
      () => deliveries.start(),
      () => hosting.open(),
      () => servers.recover(),
      () => hosting.resume(),
      () => builds.resume(),
      () => this.credentials.api_key && keys.keepCopy(this.credentials.api_key),
      () => fixtures && this.#apply(fixtures),
    ]
    for (const step of steps) {
      if (this.#ended.signal.aborted) return
      await step()
    }
    this.#ready = true
  }

  async #apply(fixtures: Fixtures): Promise<void> {
    const { applyFixtures } = await import('../testing/seed/apply/apply.ts')
    const { services, credentials } = this
    await applyFixtures(fixtures, {
      services,
      firstKey: credentials.api_key,
      baseUrl: this.#parts.baseUrl(),
      ended: this.#ended.signal,
    })
  }
}

/** The first key and the admin token: those of an earlier start, or new ones, kept for the next. */
function firstCredentials(
  { config, folder, randomFor }: GenerationParts,
  { keys }: Services,
  first: FirstIds | undefined,
): CredentialsFile {
  const kept = folder.readCredentials()
  const admin = kept?.admin_token ?? `admin_${base62(randomFor('admin_token'), 43)}`
  const credentials = { api_key: keys.ensureFirst(config.apiKey, kept?.api_key, first), admin_token: admin }
  if (credentials.api_key !== kept?.api_key || credentials.admin_token !== kept.admin_token) {
    folder.writeCredentials(credentials)
  }
  return credentials
}
