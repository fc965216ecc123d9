import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { agentLoader, type FileScenario, ScenarioStore } from '../agents/agents.ts'
import { type ComputeDriver, kindOf, type OpenPlace, type Sender } from '../compute/compute.ts'
import { Emulators } from '../compute/emulators/emulators.ts'
import type { Config } from '../config/config.ts'
import type { SiteRoutes } from '../hosting/hosting.ts'
import type { Packages } from '../hosting/registries/packages.ts'
import { CredentialChanges } from '../http/credential-changes.ts'
import type { Listener } from '../http/listener.ts'
import { sessionsIn } from '../http/session-cookie.ts'
import { Metering } from '../resources/accounts/metering.ts'
import type { AccountPlan } from '../resources/accounts/model.ts'
import { Plans } from '../resources/accounts/plans.ts'
import type { Changes, ChangeType } from '../resources/changes/types.ts'
import { removalListener } from '../resources/deployments/removal.ts'
import { Outbox } from '../resources/events/outbox.ts'
import { Leaves } from '../resources/exec/leave.ts'
import { ExecService } from '../resources/exec/service.ts'
import { FilesService } from '../resources/files/service.ts'
import { KeysService } from '../resources/keys/service.ts'
import { SecretsService } from '../resources/secrets/service.ts'
import { ImageChoice } from '../resources/servers/images.ts'
import { lazyListener, ServerLifecycleListeners } from '../resources/servers/lifecycle-listener.ts'
import { ServersService } from '../resources/servers/service.ts'
import { TemplateCatalog } from '../resources/templates/catalog.ts'
import { Deliveries, type WebhookOverrides } from '../resources/webhooks/deliveries.ts'
import type { LocalWebhooks } from '../resources/webhooks/destination.ts'
import { ChangeNotifier } from '../runtime/change-notifier.ts'
import type { SteerableClock } from '../runtime/clock.ts'
import { createIds } from '../runtime/ids.ts'
import { Lazy } from '../runtime/lazy.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Random } from '../runtime/random.ts'
import type { Recorder } from '../runtime/recorder.ts'
import { RequestContext } from '../runtime/request-context.ts'
import { SignIn, type SignInLinks } from '../signin/sign-in.ts'
import type { Cipher } from '../storage/cipher.ts'
import type { Heartbeat } from '../storage/data-directory.ts'
import type { Database } from '../storage/database.ts'
import {
  deliveryFaults,
  FaultStore,
  FaultyCompute,
  JOURNAL_BYTES,
  RequestJournal,
  type RunRecord,
  type StateCause,
} from '../testing/testing.ts'
import { StateLookup } from './state-lookup.ts'

/** Dependencies of the services. */
export interface ServiceDependencies {
  config: Config
  version: string
  logger: Logger
  clock: SteerableClock
  /** What begins the state that they are of. */
  begunBy: StateCause
  /** Returns the randomness of each purpose. */
  randomFor: (purpose: string) => Random
  /** Absolute path of the data directory. */
  dataDir: string
  database: Database
  cipher: Cipher
  driver: ComputeDriver
  /** Opens where servers may be besides what the driver runs them on. */
  openPlace: OpenPlace
  /** The plan of accounts without their own. */
  plan: AccountPlan
  /** Where the time of a kill is found; null if this system has no place for it. */
  heartbeat: Heartbeat | null
  webhooks: WebhookOverrides | undefined
  localWebhooks: LocalWebhooks
  /** The variables that berth was started with. */
  environment: Readonly<Record<string, string | undefined>>
  /** The packages that servers share. */
  packages: Packages
  /** Links that sign a browser in. */
  links: SignInLinks
  /** The scripted agent's scenarios from files. */
  scenarios: readonly FileScenario[]
  /** Sets the ways to sites besides their own ports; null removes them. */
  route: (routes: SiteRoutes | null) => void
  /** Records what happens, for a report; null if nothing is recorded. */
  record: RunRecord | null
  /** The main port. */
  listener: Pick<Listener, 'upgrade' | 'expire' | 'connectionOf'>
}

/** Everything that knows a rule of the domain, wired up. Nothing of it runs yet. */
export type Services = ReturnType<typeof createServices>

/**
 * Creates the services, each group from those before it. Tasks, builds, webhooks, and hosting with projects and deployments
 * are loaded on first use. `startOrder` of start-order.ts defines when they start and stop.
 */
export function createServices(dependencies: ServiceDependencies) {
  const { config, version, clock, dataDir, localWebhooks, listener, packages } = dependencies
  const base = createBase(dependencies)
  const access = createAccess(dependencies, base)
  const onServers = createServers(dependencies, base, access)
  const webhooks = createWebhooks(dependencies, base)
  const hosted = createHosting(dependencies, base, access, onServers)
  const work = createWork(dependencies, base, onServers, hosted)
  const changeStreams = createChangeStreams(dependencies, { base, access, onServers, webhooks, hosted, work })
  subscribeToServers(dependencies, base, onServers, hosted, work)
  const { tasks, builds, terminals, executions, processes, usage } = work
  const { compute } = onServers
  return {
    ...base.common,
    version,
    dataDir,
    state: base.state,
    /** The requests on whose behalf code runs. */
    requests: base.requests,
    sockets: listener,
    expire: base.expire,
    /** For requests of the control API. */
    controlIds: base.controlIds,
    /** For requests to inboxes. */
    inboxIds: base.inboxIds,
    compute,
    openPlace: dependencies.openPlace,
    faults: base.faults,
    servers: onServers.servers,
    /** Finds where the program is that sent a request; unknown if the connection is closed. */
    senderOf: async (request: Request): Promise<Sender> => {
      const connection = listener.connectionOf(request)
      const sender = connection === null ? 'unknown' : await compute.driver.senderOf(connection)
      // A connection that closes during the look-up is not seen, but another with the same addresses may be.
      return sender === 'elsewhere' && listener.connectionOf(request) === null ? 'unknown' : sender
    },
    exec: work.exec,
    executions: executions.get,
    leaves: new Leaves(),
    executionsDirectory: work.executionsDirectory,
    hideCredentials: (text: string) => packages.hide(text),
    /** Most characters of the result of a tool of MCP. */
    mcpOutput: config.mcpOutput,
    terminals: terminals.get,
    processes: processes.get,
    usage: usage.get,
    files: new FilesService(onServers.servers),
    templates: hosted.templates,
    secrets: onServers.secrets,
    scenarios: work.scenarios,
    keys: access.keys,
    signIn: access.signIn,
    deliveries: webhooks.deliveries,
    localWebhooks,
    journal: new RequestJournal({
      entries: config.journalSize,
      bytes: JOURNAL_BYTES,
      begun: { at: clock.now(), by: dependencies.begunBy },
      record: dependencies.record?.entry,
    }),
    webhooks: webhooks.webhooks.get,
    changeStreams: changeStreams.get,
    tasks: tasks.get,
    builds: builds.get,
    projects: async () => (await hosted.apps.get()).projects,
    deployments: async () => (await hosted.apps.get()).deployments,
    lazy: { tasks, builds, apps: hosted.apps, terminals, executions, changeStreams },
  }
}

type Base = ReturnType<typeof createBase>
type Access = ReturnType<typeof createAccess>
type OnServers = ReturnType<typeof createServers>
type Hosted = ReturnType<typeof createHosting>
type Work = ReturnType<typeof createWork>

/** Creates what most services need: the state, ids, events, changes, plans and charges. */
function createBase(dependencies: ServiceDependencies) {
  const { clock, logger, randomFor, database, cipher, listener } = dependencies
  const { queries } = database
  const ids = createIds(clock, randomFor)
  const requests = new RequestContext()
  const deleteOld = (): void => {
    import('../resources/webhooks/old-events.ts')
      .then(({ deleteOldEvents }) => (database.closed ? undefined : deleteOldEvents(queries)))
      .catch((error) => logger.error('old events could not be deleted', { error }))
  }
  const outbox = new Outbox({ requests, queries, clock, ids, deleteOld })
  const changes: Changes = new ChangeNotifier<ChangeType>()
  const plans = new Plans(database, dependencies.plan)
  const common = {
    ...{ database, queries, clock, ids, logger, cipher, outbox, changes, plans },
    metering: new Metering({ ...dependencies, queries, outbox, plans, changes }),
    credentialChanges: new CredentialChanges(),
    credentialOf: (serverId: string): string => dependencies.packages.tokenOf(serverId),
    recorder: dependencies.record as Recorder | null,
  }
  const expire = (request: Request): void => listener.expire(request)
  return {
    common,
    expire,
    requests,
    state: new StateLookup(queries),
    faults: new FaultStore({ ...common, random: randomFor('fault'), expire }),
    // How often a test asks whether something has happened changes no id of the API's requests.
    controlIds: createIds(clock, (prefix) => randomFor(`control_${prefix}`)),
    // Deliveries arrive between a test's requests at times that vary.
    inboxIds: createIds(clock, (prefix) => randomFor(`inbox_${prefix}`)),
  }
}

/** Creates what finds callers: keys, sessions and grants. */
function createAccess({ randomFor, dataDir, links }: ServiceDependencies, { common, state }: Base) {
  const keys = new KeysService({
    ...common,
    random: randomFor('api_key'),
    owners: {
      server: (accountId, id) => state.ownsServer(accountId, id),
      project: (accountId, id) => state.ownsProject(accountId, id),
    },
  })
  const signIn = new SignIn({ ...common, dataDir, links, keys })
  return { keys, signIn }
}

/** Creates the servers, and what runs them. */
function createServers(
  { config, driver, packages }: ServiceDependencies,
  { common, state }: Base,
  { keys, signIn }: Access,
) {
  const { ids, logger, changes } = common
  const repeatable = config.rngSeed !== null
  // Ids of a repeatable run repeat at each start, and a new server or project must not get one that the scope of a
  // credential names, even of a deleted one. Others are random, and need no look.
  const isInScope = (id: string): boolean =>
    repeatable && (keys.hasScopeFor(id) || signIn.grants.hasScopeFor(id))
  const compute = new FaultyCompute({
    driver,
    // Ids of a repeatable run follow from its requests only.
    spareServers: repeatable ? 0 : config.spareServers,
    nextId(isKept) {
      const isTaken = (id: string): boolean => state.hasServer(id) || isKept(id) || isInScope(id)
      return ids.next('srv', repeatable ? isTaken : undefined)
    },
    logger,
    onFaults: (serverId) => changes.notify('server_fault', serverId, null),
  })
  const servers = new ServersService({
    ...common,
    compute,
    images: new ImageChoice({ ...config, compute: kindOf(driver.name).compute }),
    repeatable,
    network: {
      outbound: { mode: config.outbound, hosts: config.outboundHosts },
      machinePorts: config.serverHosts,
    },
    idleTimeoutMs: config.idleTimeoutMs,
  })
  packages.aside = driver.keepsFilesHere ? (limits, use) => compute.aside(limits, use) : null
  compute.onFreed((serverId) => servers.measure(serverId))
  const secrets = new SecretsService({ ...common, servers })
  return { compute, servers, secrets, isInScope }
}

/** Creates webhooks and their deliveries. */
function createWebhooks(
  { version, randomFor, localWebhooks, webhooks: overrides }: ServiceDependencies,
  { common, faults }: Base,
) {
  const deliveries = new Deliveries({
    ...common,
    version,
    randomFor,
    localWebhooks,
    faults: deliveryFaults(faults),
    overrides,
  })
  const webhooks = new Lazy(async () => {
    const { WebhooksService } = await import('../resources/webhooks/service.ts')
    return new WebhooksService({
      ...common,
      destinations: deliveries.destinations,
      random: randomFor('webhook_secret'),
      onDeleted: (id) => deliveries.forget(id),
    })
  })
  return { deliveries, webhooks }
}

/** Creates what runs and serves apps: hosting, projects and deployments. */
function createHosting(
  { config, dataDir, randomFor, environment, packages, route }: ServiceDependencies,
  { common, state }: Base,
  { signIn }: Access,
  { servers, secrets, isInScope }: OnServers,
) {
  const { clock, logger } = common
  const templates = new TemplateCatalog()
  const apps = new Lazy(async () => {
    const [{ Hosting }, { ProjectsService }, { DeploymentsService }] = await Promise.all([
      import('../hosting/hosting.ts'),
      import('../resources/projects/service.ts'),
      import('../resources/deployments/service.ts'),
    ])
    const hosting = new Hosting({
      clock,
      recorder: common.recorder,
      logger,
      servers: {
        sandbox: (id) => servers.lifecycle.sandbox(id),
        findWorkspace(id) {
          const row = servers.records.find(id)
          return row && servers.workspace(row)
        },
        isSleeping: (id) => servers.records.find(id)?.status === 'sleeping',
        hold: (id) => servers.lifecycle.hold(id),
      },
      recordedPorts: () => state.sitePorts(),
      host: config.host,
      publicHost: config.publicHost,
      ports: config.projectPorts,
      packages,
      dataDir,
      repeatable: config.rngSeed !== null,
      async mayReadLogs(serverId, cookies) {
        const secrets = sessionsIn(cookies)
        if (secrets.length === 0) return false
        const owner = servers.records.find(serverId)?.accountId
        const sessions = await signIn.sessions()
        return secrets.some((secret) => owner !== undefined && sessions.find(secret)?.accountId === owner)
      },
    })
    route(hosting.routes)
    const { sourceFolders, allowLocalSources: allowLocal } = config
    const projects = new ProjectsService({
      ...common,
      servers,
      secrets,
      templates,
      hosting,
      random: randomFor('project_name'),
      sources: { sourceFolders, allowLocal, environment },
      isInScope,
    })
    const deployments = new DeploymentsService({ ...common, servers, secrets, hosting })
    const listeners = new ServerLifecycleListeners([projects.apps, deployments, hosting])
    return { hosting, projects, deployments, listeners, route }
  })
  return { templates, apps }
}

/** Creates what runs on servers on behalf of callers: commands, terminals, tasks and builds, and what measures it. */
function createWork(
  { config, dataDir, scenarios: ofFiles, listener: sockets }: ServiceDependencies,
  { common, requests }: Base,
  { servers, secrets }: OnServers,
  { templates, apps }: Hosted,
) {
  const scenarios = new ScenarioStore(common.queries, ofFiles)
  const emulators = new Emulators(common.logger)
  const agent = agentLoader({ ...common, config, emulators, scenarios })
  const tasks = new Lazy(async () => {
    const { TasksService } = await import('../resources/tasks/service.ts')
    return new TasksService({ ...common, servers, secrets, agent })
  })
  const exec = new ExecService({ ...common, servers, secrets, requests })
  const terminals = new Lazy(async () => {
    const { TerminalsService } = await import('../resources/terminals/service.ts')
    const { terminalIdleMs } = config
    return new TerminalsService({ ...common, servers, secrets, exec, emulators, sockets, terminalIdleMs })
  })
  const executionsDirectory = join(dataDir, 'executions')
  const executions = new Lazy(async () => {
    const { ExecutionsService } = await import('../resources/exec/executions.ts')
    const { executionIdleMs } = config
    return new ExecutionsService({
      ...common,
      servers,
      exec,
      executionIdleMs,
      directory: executionsDirectory,
    })
  })
  servers.meter.countBeside((id) => executions.loaded?.storageBytes(id) ?? 0)
  const processes = new Lazy(async () => {
    const { ProcessesService } = await import('../resources/processes/service.ts')
    return new ProcessesService({ ...common, servers })
  })
  const usage = new Lazy(async () => {
    const { UsageService } = await import('../resources/usage/service.ts')
    return new UsageService({ ...common, servers })
  })
  const buildLogs = join(dataDir, 'logs', 'builds')
  const builds = new Lazy(async () => {
    const { BuildsService } = await import('../resources/builds/service.ts')
    return new BuildsService({
      ...common,
      servers,
      secrets,
      catalog: templates,
      agent,
      preparation: async () => (await apps.get()).hosting.preparation,
      deployments: async () => (await apps.get()).deployments,
      logDirectory: buildLogs,
    })
  })
  return {
    ...{ scenarios, tasks, exec, terminals, executions, executionsDirectory },
    ...{ processes, usage, builds, buildLogs },
  }
}

/** Creates the streams of changes, which read every kind of object. */
function createChangeStreams(
  { listener: sockets }: ServiceDependencies,
  groups: {
    base: Base
    access: Access
    onServers: OnServers
    webhooks: ReturnType<typeof createWebhooks>
    hosted: Hosted
    work: Work
  },
) {
  const { common } = groups.base
  const { keys, signIn } = groups.access
  const { servers, secrets } = groups.onServers
  const { webhooks } = groups.webhooks
  const { apps } = groups.hosted
  const { tasks, builds, terminals, executions } = groups.work
  return new Lazy(async () => {
    const [{ ChangesService }, { AccountsService }, { programView, browserView }] = await Promise.all([
      import('../resources/changes/service.ts'),
      import('../resources/accounts/service.ts'),
      import('../signin/access/api.ts'),
    ])
    return new ChangesService({
      ...common,
      sockets,
      servers,
      projects: async () => (await apps.get()).projects,
      deployments: async () => (await apps.get()).deployments,
      tasks: tasks.get,
      builds: builds.get,
      terminals: terminals.get,
      executions: executions.get,
      secrets,
      keys,
      webhooks: webhooks.get,
      program({ accountId }, id) {
        const grant = signIn.grants.list(accountId).find((grant) => grant.id === id)
        return grant && programView(grant)
      },
      async browser(caller, id) {
        const sessions = (await signIn.sessions()).list(caller.accountId)
        const session = sessions.find((session) => session.id === id)
        return session && browserView(session, caller)
      },
      accounts: new AccountsService({ ...common, keys, signIn, servers }),
    })
  })
}

/** Has services notified of what happens to servers, in this order. */
function subscribeToServers(
  { config }: ServiceDependencies,
  { common, state }: Base,
  { servers }: OnServers,
  { apps }: Hosted,
  { tasks, terminals, executions, executionsDirectory, builds, buildLogs }: Work,
): void {
  const { queries, outbox } = common
  servers.subscribe(lazyListener(tasks, (service) => service))
  servers.subscribe(lazyListener(terminals, (service) => service))
  servers.subscribe(
    lazyListener(executions, (service) => service, {
      serverDeleted: (id) => existsSync(join(executionsDirectory, id)),
    }),
  )
  servers.subscribe(
    // The logs of builds that are long over are removed too.
    lazyListener(builds, (service) => service, { serverDeleted: (id) => existsSync(join(buildLogs, id)) }),
  )
  servers.subscribe(removalListener({ queries, outbox, host: config.host }))
  servers.subscribe(
    lazyListener(apps, ({ listeners }) => listeners, { serverStarted: (id) => state.hasApps(id) }),
  )
}
