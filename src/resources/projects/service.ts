import { WorkspaceError } from '../../compute/workspace.ts'
import { badRequest, notFound } from '../../errors.ts'
import { missingVariables } from '../../hosting/app.ts'
import type { Hosting } from '../../hosting/hosting.ts'
import { type Caller, mayReachProject } from '../../http/caller.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Logger } from '../../runtime/logger.ts'
import { once } from '../../runtime/once.ts'
import type { Random } from '../../runtime/random.ts'
import type { Cipher } from '../../storage/cipher.ts'
import type { Plans } from '../accounts/plans.ts'
import { appLog, type ReadableLog } from '../logs/readable-log.ts'
import type { ProjectSecrets, ProjectSecretsSet, ProjectVariables } from '../secrets/model.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServersService } from '../servers/service.ts'
import type { TemplateCatalog } from '../templates/catalog.ts'
import { parseAppDirectory } from './app-directory.ts'
import { ProjectCode } from './code.ts'
import { ProjectCreation } from './creation.ts'
import type { ProjectDetection } from './detection.ts'
import type { Project, ProjectCreate, ProjectInit, ProjectPush, ProjectUpdate, PushResult } from './model.ts'
import { ProjectApps } from './project-app.ts'
import { ProjectPushes } from './push.ts'
import { ProjectRecords, type RecordsDependencies } from './records.ts'
import type { SourcesOptions } from './sources/sources.ts'
import { type ProjectRow, projectDirectory, toProject } from './table.ts'

/** Dependencies of the projects. */
interface ProjectsDependencies extends RecordsDependencies {
  ids: Ids
  logger: Logger
  cipher: Cipher
  /** For default names. */
  random: Random
  plans: Plans
  servers: ServersService
  secrets: SecretsService
  templates: TemplateCatalog
  hosting: Hosting
  /** Options of the sources of code. */
  sources: SourcesOptions
  /** Reports whether the scope of a credential names an id, so that no new project may have it. */
  isInScope: (id: string) => boolean
}

/** Projects as callers see them. */
export class ProjectsService {
  readonly apps: ProjectApps
  /** Loads what detects the apps of code that becomes no project. */
  readonly detection: () => Promise<ProjectDetection>
  readonly #dependencies: ProjectsDependencies
  readonly #records: ProjectRecords
  readonly #code: ProjectCode
  readonly #creation: ProjectCreation
  readonly #pushes: ProjectPushes

  constructor(dependencies: ProjectsDependencies) {
    this.#dependencies = dependencies
    this.#records = new ProjectRecords(dependencies)
    this.#code = new ProjectCode({ ...dependencies, records: this.#records })
    this.apps = new ProjectApps({ ...dependencies, records: this.#records, code: this.#code })
    const parts = { ...dependencies, records: this.#records, code: this.#code, apps: this.apps }
    this.#creation = new ProjectCreation(parts)
    this.detection = once(async () => new (await import('./detection.ts')).ProjectDetection(parts))
    this.#pushes = new ProjectPushes(parts)
  }

  /** Recovers the pushes that an earlier berth did not finish, before anything of their servers starts. */
  recover(): Promise<void> {
    return this.#pushes.recover()
  }

  /** Returns the projects of a server that the caller may access, newest first. @throws BerthError 404 */
  list(caller: Caller, serverId: string): Project[] {
    this.#dependencies.servers.getRow(caller, serverId)
    return this.#toProjects(caller, this.#records.listByServer(serverId))
  }

  /** Returns all projects that the caller may access, newest first. */
  listAll(caller: Caller): Project[] {
    return this.#toProjects(caller, this.#records.listByAccount(caller.accountId))
  }

  /** Returns a project. @throws BerthError 404 */
  get(caller: Caller, id: string): Project {
    return this.#toProject(this.getRow(caller, id))
  }

  /** Returns the record of a project that the caller may access. @throws BerthError 404 */
  getRow(caller: Caller, id: string): ProjectRow {
    const row = this.#records.find(id)
    if (row?.accountId === caller.accountId && mayReachProject(caller, row)) return row
    throw notFound(`The project "${id}"`)
  }

  /** Reports whether an account has a project of this id. */
  owns(accountId: string, id: string): boolean {
    return this.#records.find(id)?.accountId === accountId
  }

  /**
   * Creates a project. If its source contains code, its bring-up has started when this resolves.
   *
   * @param upload the archive in the request's file
   * @throws BerthError 400, 402 if the budget is used up, 403 for a key limited to projects or at the plan's limit,
   * 404
   */
  async create(
    caller: Caller,
    serverId: string,
    input: ProjectCreate,
    upload: Uint8Array | null,
  ): Promise<Project> {
    return this.get(caller, await this.#creation.create(caller, serverId, input, upload))
  }

  /**
   * Changes a project. Its slug and URL stay.
   *
   * @throws BerthError 404
   */
  async update(caller: Caller, id: string, changes: ProjectUpdate): Promise<Project> {
    const before = this.getRow(caller, id)
    const { name, description, visibility, lifecycle } = changes
    const known = { name, description, visibility, lifecycle }
    const given = Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined))
    if (Object.keys(given).length > 0) {
      this.#records.update(id, given)
      const row = this.getRow(caller, id)
      if (row.visibility !== before.visibility) await this.apps.of(row).applyVisibility(row)
    }
    return this.get(caller, id)
  }

  /**
   * Names the app's own directory in a project's code, for its next bring-up. Reports whether it was another one.
   *
   * @throws BerthError 400, 404
   */
  setDirectory(caller: Caller, id: string, given: string): boolean {
    const row = this.getRow(caller, id)
    const directory = parseAppDirectory('app_directory', given)
    this.#records.setDirectory(id, directory)
    return row.directory !== directory
  }

  /** Ends a project's app and removes it with its files. @throws BerthError 404 */
  async delete(caller: Caller, id: string): Promise<void> {
    await this.#remove(this.getRow(caller, id))
  }

  /** Removes an ephemeral project with its files. @throws BerthError 400 for a persistent one, 404 */
  async cleanup(caller: Caller, id: string): Promise<void> {
    const row = this.getRow(caller, id)
    if (row.lifecycle !== 'ephemeral') {
      throw badRequest(
        'Only ephemeral projects are cleaned up, and this one is persistent. Delete it, or make it ephemeral first.',
      )
    }
    await this.#remove(row)
  }

  /**
   * Continues a bring-up, or starts a new one if the last has ended.
   *
   * @throws BerthError 400 if there is no code, 402 if the budget is used up, 404
   */
  async init(caller: Caller, id: string, { proceed = false }: ProjectInit): Promise<Project> {
    const { servers } = this.#dependencies
    const row = this.getRow(caller, id)
    const server = servers.getRow(caller, row.serverId)
    const hasFiles = await this.#code.hasFiles(row, servers.workspace(server))
    if (!hasFiles && !this.#code.canFetch(row)) {
      throw badRequest(
        `The project has no code. Put some into its directory ${projectDirectory(row)} of the server's workspace first.`,
      )
    }
    servers.checkBudget(server)
    this.apps.of(row).init(row, { proceed, from: hasFiles ? 'install' : 'fetch' })
    return this.get(caller, id)
  }

  /**
   * Makes the code of a project what a manifest describes, and brings the app up again as far as that is necessary.
   *
   * @param archive the content of the files that the server lacks
   * @throws BerthError 400, 402 if the budget is used up, 404
   */
  async push(
    caller: Caller,
    id: string,
    manifest: ProjectPush,
    archive: Uint8Array | null,
  ): Promise<PushResult> {
    const { servers } = this.#dependencies
    const row = this.getRow(caller, id)
    const server = servers.getRow(caller, row.serverId)
    servers.checkBudget(server)
    const pushed = await this.#pushes.push(row, server, manifest, archive)
    return { ...pushed, project: this.get(caller, id) }
  }

  /**
   * Starts the app of a project again, as it was built last. A bring-up that is under way goes on.
   *
   * @throws BerthError 400 if there is no code, 402 if the budget is used up, 404
   */
  async restart(caller: Caller, id: string): Promise<Project> {
    const { servers } = this.#dependencies
    const row = this.getRow(caller, id)
    if (row.runtimeStatus === 'unbuilt' || row.plan === null) return this.init(caller, id, {})
    servers.checkBudget(servers.getRow(caller, row.serverId))
    this.apps.of(row).init(row, { proceed: row.proceed, from: 'start' })
    return this.get(caller, id)
  }

  /** Waits until no bring-up of a project runs, and returns the project. @throws BerthError 404 */
  async waitForBringUp(caller: Caller, id: string): Promise<Project> {
    await this.apps.of(this.getRow(caller, id)).waitForBringUp()
    return this.get(caller, id)
  }

  /** Returns which variables of a project are set, and which its app asks for. @throws BerthError 404 */
  listSecrets(caller: Caller, id: string): ProjectVariables {
    const { secrets } = this.#dependencies
    const { serverId, plan } = this.getRow(caller, id)
    const keys = secrets.names(serverId, id)
    const own = new Set(keys)
    const shared = new Set(secrets.names(serverId))
    const env = plan?.env ?? {}
    const missing = new Set(missingVariables({ env }, new Set([...own, ...shared])))
    return {
      project_id: id,
      keys,
      variables: Object.entries(env).map(([name, { required, description, default: value }]) => ({
        name,
        required,
        description,
        default: value,
        set_for: own.has(name) ? 'project' : shared.has(name) ? 'server' : null,
        missing: missing.has(name),
      })),
    }
  }

  /**
   * Sets and removes a project's variables. A bring-up that waits for them continues; otherwise a running app is
   * restarted.
   *
   * @throws BerthError 400, 404
   */
  setSecrets(caller: Caller, id: string, { secrets: changes }: ProjectSecretsSet): ProjectSecrets {
    const { serverId } = this.getRow(caller, id)
    return { project_id: id, keys: this.#dependencies.secrets.set(serverId, id, changes) }
  }

  /** Returns the log of a project's bring-ups and of its app. @throws BerthError 404 */
  async openLog(caller: Caller, id: string): Promise<ReadableLog> {
    const row = this.getRow(caller, id)
    const { log } = await this.apps.of(row).hosted(row)
    return appLog(log, this.#dependencies.clock)
  }

  async #remove(row: ProjectRow): Promise<void> {
    const { servers } = this.#dependencies
    const server = servers.records.find(row.serverId)
    await this.apps.of(row).shutDown()
    await this.#pushes.forget(row)
    if (server) {
      await servers
        .workspace(server)
        .remove(projectDirectory(row))
        .catch((error) => {
          if (!(error instanceof WorkspaceError)) throw error
        })
      servers.meter.changed(server)
    }
    this.#records.delete(row)
    await this.apps.remove(row)
  }

  #toProjects(caller: Caller, rows: ProjectRow[]): Project[] {
    return rows.filter((row) => mayReachProject(caller, row)).map((row) => this.#toProject(row))
  }

  #toProject = (row: ProjectRow): Project =>
    toProject(row, this.#dependencies.hosting.urlOf(row.port), this.#dependencies.hosting.find(row.id))
}
