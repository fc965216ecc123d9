import type { SelectedDriver } from '../compute/compute.ts'
import type { OperationCommands } from '../contract/reference/routes.ts'
import type { Listener } from '../http/listener.ts'
import type { FirstIds } from '../resources/keys/first-account.ts'
import { base62 } from '../runtime/random.ts'
import { Supervisor } from '../runtime/supervisor.ts'
import { openCipher } from '../storage/cipher.ts'
import type { CredentialsFile, DataDirectory } from '../storage/data-directory.ts'
import { type Database, openDatabase } from '../storage/database.ts'
import {
  type Fixtures,
  loadApplyFixtures,
  type StateCause,
  type StateOperations,
} from '../testing/testing.ts'
import { type Api, createApi } from './api.ts'
import { createControl } from './control.ts'
import { createServices, type ServiceDependencies, type Services } from './services.ts'
import { startOrder } from './start-order.ts'

/** Dependencies that outlive one generation. */
export interface GenerationDependencies
  extends Omit<
    ServiceDependencies,
    'dataDir' | 'database' | 'cipher' | 'scenarios' | 'begunBy' | 'driver' | 'listener'
  > {
  dataDirectory: DataDirectory
  fixtures: Fixtures | null
  /** Resolves when no request is open any more, or after a while. */
  requestsEnded: () => Promise<void>
  /** The address of the main port, without a slash at the end. */
  baseUrl: string
  selected: SelectedDriver
  /** The main port. */
  listener: Listener
  /** When the instance started, by the clock of `performance`. */
  startedAt: number
  /** Saves and replaces the state, on behalf of the control API. */
  states: StateOperations
  /** Reports whether recovery and fixtures are complete. */
  isReady: () => boolean
  /** Returns the command lines that call each operation. */
  commands: OperationCommands
  /** Milliseconds without a byte after which a request's body is given up; undefined for the usual ones. */
  bodySilenceMs: number | undefined
}

/**
 * Everything built on one state of the data directory: database, services, API. A start creates the first; a reset
 * and a restored snapshot end it and create the next. State in memory ends with it, so nothing needs resetting.
 */
export class Generation {
  readonly services: Services
  readonly credentials: CredentialsFile
  readonly #dependencies: GenerationDependencies
  readonly #database: Database
  readonly #api: Api
  readonly #supervisor: Supervisor
  /** Ends the recording; null if nothing is recorded. */
  readonly #endRecord: (() => Promise<void>) | null
  #fixtures: Fixtures | null = null

  /**
   * Opens the state and creates the services, without starting them.
   *
   * @param begunBy what begins it
   * @param first ids to use first if the state is empty
   * @throws StartupError if the state cannot be used
   */
  constructor(dependencies: GenerationDependencies, begunBy: StateCause, first?: FirstIds) {
    this.#dependencies = dependencies
    const { config, dataDirectory } = dependencies
    this.#database = openDatabase(dataDirectory.database, config.ephemeral)
    try {
      const { queries } = this.#database
      this.services = createServices({
        ...dependencies,
        driver: dependencies.selected.driver,
        begunBy,
        dataDir: dataDirectory.path,
        database: this.#database,
        cipher: openCipher({ queries, dataDirectory, configured: config.masterKey }),
        scenarios: dependencies.fixtures?.scenarios ?? [],
      })
      this.credentials = firstCredentials(dependencies, this.services, first)
    } catch (error) {
      this.#database.close()
      throw error
    }
    const { services, credentials } = this
    this.#supervisor = new Supervisor(
      startOrder(services, {
        requestsEnded: dependencies.requestsEnded,
        keepFirstKey() {
          if (credentials.api_key) services.keys.keepCopy(credentials.api_key)
        },
        applyFixtures: () => this.#applyFixtures(),
      }),
      dependencies.logger,
    )
    const stopping = this.#supervisor.aborted
    const host = { bound: config.host, publicHost: config.publicHost }
    this.#api = createApi(
      services,
      stopping,
      host,
      (callers, whole) =>
        createControl({
          ...dependencies,
          driver: dependencies.selected,
          addressOf: (request) => dependencies.listener.addressOf(request),
          ...{ services, credentials, callers, whole, stopping },
        }),
      dependencies.commands,
      dependencies.bodySilenceMs,
    )
    this.#endRecord = this.#record()
  }

  /** Whether recovery and fixtures are complete. */
  get ready(): boolean {
    return this.#supervisor.started
  }

  /** Responds to a request. Never throws. */
  get dispatch(): Api['dispatch'] {
    return this.#api.dispatch
  }

  /** Records the outcome of work that a killed berth left unfinished, before the first request. */
  recover(): Promise<void> {
    return this.#supervisor.recover()
  }

  /**
   * Starts what ran at the last stop, then applies the fixtures. Further calls wait for the same start.
   *
   * @param fixtures null leaves the state as it is
   * @throws StartupError if fixtures cannot be applied
   */
  open(fixtures: Fixtures | null): Promise<void> {
    this.#fixtures ??= fixtures
    return this.#supervisor.start()
  }

  /** Aborts a start under way, without waiting for it. `stop` and `close` are still needed. */
  abandon(): void {
    this.#supervisor.abort()
  }

  /** Stops all services; later requests fail. Open requests get their responses, from the state, which stays open. */
  stop(): Promise<void> {
    return this.#supervisor.stop()
  }

  /** Stops all services if that is not done, and closes the state. */
  async close(): Promise<void> {
    await this.#supervisor.stop()
    await this.#endRecord?.()
    this.#database.close()
  }

  /** Resolves when the removal of directories without a server is complete, if one is under way. */
  swept(): Promise<void> {
    return this.services.servers.lifecycle.swept()
  }

  /** The ids of the first account, and of its first key if that exists. */
  get firstIds(): FirstIds | undefined {
    return this.services.keys.first.ids(this.credentials.api_key)
  }

  /** Writes a copy of the database to a path that does not exist. */
  copyDatabase(path: string): void {
    this.#database.copyTo(path)
  }

  /**
   * Applies fixtures beside what is there, without waiting for bring-ups.
   *
   * @throws StartupError for what the API refuses; what was created before is removed again
   */
  bringUp(fixtures: Fixtures): Promise<void> {
    return this.#apply(fixtures, 'up')
  }

  /** Has everything of this state recorded. */
  #record(): (() => Promise<void>) | null {
    const { record } = this.#dependencies
    if (record === null) return null
    const { services, credentials } = this
    const { lazy, secrets, state } = services
    return record.begin({
      ...services,
      credentials: [credentials.api_key, credentials.admin_token].filter((one) => one !== null),
      secrets: () => secrets.values(),
      describe: (url) => this.#api.describe(url),
      nameOf: (log) => state.projectName(log),
      read: async (change) => (await lazy.changeStreams.get()).readObject(change),
    })
  }

  async #applyFixtures(): Promise<void> {
    if (this.#fixtures !== null) await this.#apply(this.#fixtures, 'start')
  }

  async #apply(fixtures: Fixtures, mode: 'start' | 'up'): Promise<void> {
    const { applyFixtures } = await loadApplyFixtures()
    const { services, credentials } = this
    await applyFixtures(fixtures, {
      mode,
      services,
      firstKey: credentials.api_key,
      baseUrl: this.#dependencies.baseUrl,
      ended: this.#supervisor.aborted,
    })
  }
}

/**
 * Returns the first key and the admin token: those of an earlier start, or new ones, which are written for the next.
 */
function firstCredentials(
  { config, dataDirectory, randomFor }: GenerationDependencies,
  { keys }: Services,
  first: FirstIds | undefined,
): CredentialsFile {
  const kept = dataDirectory.readCredentials()
  const admin = kept?.admin_token ?? `admin_${base62(randomFor('admin_token'), 43)}`
  const credentials = { api_key: keys.first.ensure(config.apiKey, kept?.api_key, first), admin_token: admin }
  if (credentials.api_key !== kept?.api_key || credentials.admin_token !== kept.admin_token) {
    dataDirectory.writeCredentials(credentials)
  }
  return credentials
}
