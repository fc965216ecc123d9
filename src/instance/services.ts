import { eq } from 'drizzle-orm'
import { configuredAgent } from '../agents/registry.ts'
import { type FileScenario, ScenarioStore } from '../agents/scripted/store.ts'
import type { Compute, Connection } from '../compute/driver.ts'
import type { AgentConfig } from '../config/agents.ts'
import { CredentialChanges } from '../http/credential-changes.ts'
import { Metering } from '../resources/accounts/metering.ts'
import type { Plan } from '../resources/accounts/plan.ts'
import { Plans } from '../resources/accounts/plans.ts'
import { accounts } from '../resources/accounts/table.ts'
import { BuildsEntry } from '../resources/builds/compose.ts'
import { Outbox } from '../resources/events/outbox.ts'
import { ExecService } from '../resources/exec/service.ts'
import { FilesService } from '../resources/files/service.ts'
import { composeHosting } from '../resources/hosting/compose.ts'
import type { HostingSurroundings } from '../resources/hosting/parts.ts'
import { KeysService } from '../resources/keys/service.ts'
import { SecretsService } from '../resources/secrets/service.ts'
import { ServersService } from '../resources/servers/service.ts'
import { TasksEntry } from '../resources/tasks/compose.ts'
import { TemplateCatalog } from '../resources/templates/catalog.ts'
import { composeWebhooks, type WebhookSurroundings } from '../resources/webhooks/compose.ts'
import type { SteerableClock } from '../runtime/clock.ts'
import { createIds } from '../runtime/ids.ts'
import type { Logger } from '../runtime/logger.ts'
import { Notifier } from '../runtime/notifier.ts'
import type { Random } from '../runtime/random.ts'
import { SignIn } from '../signin/compose.ts'
import type { SignInLinks } from '../signin/session/links.ts'
import type { Cipher } from '../storage/cipher.ts'
import type { Database } from '../storage/database.ts'
import { FaultyCompute } from '../testing/faults/compute/compute.ts'
import { FaultStore } from '../testing/faults/store.ts'
import { JOURNAL_BYTES, Journal } from '../testing/journal/journal.ts'

/** What the services stand on. */
export interface Foundations {
  version: string
  logger: Logger
  clock: SteerableClock
  /** The randomness of each purpose. */
  randomFor: (purpose: string) => Random
  /** Whether the same requests are to have the same answers in every run: these wait for what is measured. */
  repeatable: boolean
  database: Database
  cipher: Cipher
  compute: Compute
  /** What accounts may use that have no plan of their own. */
  plan: Plan
  /** Milliseconds without use after which a server goes to sleep; null for never. */
  idleTimeoutMs: number | null
  /** Whether webhooks may go to this machine, and without TLS. */
  allowLocalWebhooks: boolean
  webhooks: WebhookSurroundings | undefined
  hosting: HostingSurroundings
  agents: AgentConfig
  /** Links that sign a browser in. */
  links: SignInLinks
  /** Requests that the journal keeps; 0 for none. */
  journalSize: number
  /** Scenarios of the scripted agent that files give. */
  scenarios: readonly FileScenario[]
  /** Has the connection of a request closed without an answer, seconds later. */
  expire: (request: Request) => void
  /** The connection that a request came on, or null where it is gone. */
  connectionOf: (request: Request) => Connection | null
}

/** Everything that knows a rule of the domain, wired up. Nothing of it runs yet. */
export type Services = ReturnType<typeof createServices>

/** Wires the services up. */
export function createServices(foundations: Foundations) {
  const { logger, clock, randomFor, database, cipher } = foundations
  const { queries } = database
  const ids = createIds(clock, randomFor)
  // How often a test asks whether something has happened changes no id of the API's requests.
  const controlIds = createIds(clock, (prefix) => randomFor(`control_${prefix}`))
  // Deliveries come between the requests of a test whenever they are made.
  const inboxIds = createIds(clock, (prefix) => randomFor(`inbox_${prefix}`))
  const outbox = new Outbox({ queries, clock, ids })
  const changes = new Notifier()
  const accountExists = (accountId: string): boolean =>
    queries.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, accountId)).get() !== undefined
  const plans = new Plans(database, foundations.plan)
  const metering = new Metering({ queries, clock, outbox, plans, logger })
  const credentialChanges = new CredentialChanges()
  const common = {
    database,
    queries,
    clock,
    ids,
    logger,
    cipher,
    outbox,
    changes,
    plans,
    metering,
    credentialChanges,
  }
  const compute = new FaultyCompute(foundations.compute, (serverId) => servers.measure(serverId))
  const faults = new FaultStore({ ...common, random: randomFor('fault'), expire: foundations.expire })
  const servers = new ServersService({
    ...common,
    compute,
    isNamed: (id) => keys.names(id) || signIn.grants.names(id),
    repeatable: foundations.repeatable,
    idleTimeoutMs: foundations.idleTimeoutMs,
  })
  const keys = new KeysService({
    ...common,
    random: randomFor('api_key'),
    owners: {
      server: (accountId, id) => servers.owns(accountId, id),
      project: (accountId, id) => hosting.ownsProject(accountId, id),
    },
  })
  const { dataDir } = foundations.hosting
  const signIn = new SignIn({
    ...common,
    dataDir,
    links: foundations.links,
    counts: (id, key) => keys.opens(id, key),
  })
  const { webhooks, deliveries } = composeWebhooks({
    ...common,
    version: foundations.version,
    randomFor,
    allowLocal: foundations.allowLocalWebhooks,
    surroundings: foundations.webhooks,
  })
  const secrets = new SecretsService({ database, cipher, servers })
  const templates = new TemplateCatalog()
  const hosting = composeHosting({
    ...common,
    ...foundations.hosting,
    repeatable: foundations.repeatable,
    randomFor,
    servers,
    secrets,
    templates,
  })
  const scenarios = new ScenarioStore(queries, foundations.scenarios)
  const agent = configuredAgent({ ...common, config: foundations.agents, scenarios })
  const tasks = new TasksEntry({ ...common, servers, secrets, agent })
  const builds = new BuildsEntry({ ...common, dataDir, servers, secrets, templates, hosting, agent })
  servers.follow(tasks)
  servers.follow(builds)
  servers.follow(hosting)
  return {
    ...common,
    accountExists,
    version: foundations.version,
    compute,
    faults,
    /** For requests of the control API. */
    controlIds,
    /** For requests to inboxes. */
    inboxIds,
    servers,
    /** Whether a process on a server has sent a request, or hides that it has; one whose connection is gone counts as such. */
    isSentFromServer: async (request: Request): Promise<boolean> => {
      const connection = foundations.connectionOf(request)
      if (connection === null || (await compute.isSentFromServer(connection))) return true
      // What closes while one looks is not seen, but another connection that looks alike may be.
      return foundations.connectionOf(request) === null
    },
    exec: new ExecService(servers, secrets),
    files: new FilesService(servers),
    templates,
    secrets,
    hosting,
    scenarios,
    tasks,
    builds,
    keys,
    signIn,
    webhooks,
    deliveries,
    journal: new Journal({ entries: foundations.journalSize, bytes: JOURNAL_BYTES }),
  }
}
