import { and, count, desc, eq, sql } from 'drizzle-orm'
import { notFound } from '../../errors.ts'
import type { AppPlan, FailedChange } from '../../hosting/app.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Queries } from '../../storage/database.ts'
import type { Changes } from '../changes/types.ts'
import type { Outbox } from '../events/outbox.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { InitPhase, RuntimeStatus } from './model.ts'
import { type PhaseEntry, type ProjectRow, projectCode, projects } from './table.ts'

/** Dependencies of the records. */
export interface RecordsDependencies {
  queries: Queries
  clock: Clock
  outbox: Outbox
  /** Notified of every change. */
  changes: Changes
  secrets: SecretsService
}

/** Stores the records of projects. The events and charges of a change are written in its transaction. */
export class ProjectRecords {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #outbox: Outbox
  readonly #changes: Changes
  readonly #secrets: SecretsService

  constructor({ queries, clock, outbox, changes, secrets }: RecordsDependencies) {
    this.#queries = queries
    this.#clock = clock
    this.#outbox = outbox
    this.#changes = changes
    this.#secrets = secrets
  }

  /** Returns the projects of a server, newest first. */
  listByServer(serverId: string): ProjectRow[] {
    return this.#listAll(eq(projects.serverId, serverId))
  }

  /** Returns the projects of an account, newest first. */
  listByAccount(accountId: string): ProjectRow[] {
    return this.#listAll(eq(projects.accountId, accountId))
  }

  /** Returns all projects, newest first. */
  listAll(): ProjectRow[] {
    return this.#listAll(undefined)
  }

  /** Returns the number of a server's projects. */
  count(serverId: string): number {
    const counted = this.#queries.select({ n: count() }).from(projects).where(eq(projects.serverId, serverId))
    return counted.get()?.n ?? 0
  }

  /** Returns a project of any account, or undefined. */
  find(id: string): ProjectRow | undefined {
    return this.#queries.select().from(projects).where(eq(projects.id, id)).get()
  }

  /** Returns the slugs of all accounts' projects. */
  listSlugs(): Set<string> {
    const rows = this.#queries.select({ slug: projects.slug }).from(projects).all()
    return new Set(rows.map(({ slug }) => slug))
  }

  /** Stores a new project with its first variables. */
  add(row: typeof projects.$inferInsert, variables: Readonly<Record<string, string>>): ProjectRow {
    return this.#queries.transaction(() => {
      const added = this.#queries.insert(projects).values(row).returning().get()
      this.#secrets.add(row.serverId, row.id, variables)
      this.notifyChange(added)
      return added
    })
  }

  /** Changes the fields that callers may change. */
  update(
    id: string,
    changes: Partial<Pick<ProjectRow, 'name' | 'description' | 'visibility' | 'lifecycle'>>,
  ): void {
    this.#updateRow(id, changes)
  }

  /** Records the start of a bring-up with a new run id. */
  startBringUp(id: string, initRunId: string, initPhase: InitPhase, proceed: boolean): void {
    const initPhases = [{ phase: initPhase, at: this.#clock.now() }]
    this.#updateRow(id, { initRunId, initPhase, initPhases, proceed })
  }

  /** Records that the bring-up continues without the missing variables. */
  setProceed(id: string): void {
    this.#updateRow(id, { proceed: true })
  }

  /** Records the phase of a bring-up. */
  setPhase(id: string, initPhase: InitPhase): void {
    this.#updateRow(id, this.#entering(id, initPhase))
  }

  /** Records how the app is installed, built and started. */
  setPlan(id: string, plan: AppPlan): void {
    this.#updateRow(id, { plan })
  }

  /** Records what keeps a visitor from seeing the app's pages as they are meant. */
  setWarnings(id: string, warnings: readonly string[]): void {
    if (!Bun.deepEquals(this.find(id)?.warnings, warnings)) this.#updateRow(id, { warnings })
  }

  /** Records a change that did not come up; null once another follows. */
  setFailedChange(id: string, failedChange: FailedChange | null): void {
    if ((this.find(id)?.failedChange ?? null) !== failedChange) this.#updateRow(id, { failedChange })
  }

  /** Returns the paths of the code that came from outside. */
  listCode(id: string): readonly string[] {
    return this.#codeOf(id)?.paths ?? []
  }

  /**
   * Records which files and links came from outside, and which of their directories is the app's own.
   *
   * @param directory undefined if that stays as it is
   * @throws BerthError 404 if the project was deleted while they came
   */
  setCode(id: string, paths: readonly string[], directory?: string): void {
    const row = this.find(id)
    if (row === undefined) throw notFound(`The project "${id}"`)
    if (directory !== undefined && directory !== row.directory) this.setDirectory(id, directory)
    const values = { projectId: id, paths }
    this.#queries
      .insert(projectCode)
      .values(values)
      .onConflictDoUpdate({ target: projectCode.projectId, set: { paths } })
      .run()
  }

  /** Records the app's own directory, relative to its code. */
  setDirectory(id: string, directory: string): void {
    this.#updateRow(id, { directory })
  }

  /** Returns the fingerprint of what the packages were installed from; null if it is not known. */
  installedFrom(id: string): string | null {
    return this.#codeOf(id)?.installed ?? null
  }

  /** Records what the packages were installed from; null while they are installed. */
  setInstalled(id: string, installed: string | null): void {
    this.#queries
      .insert(projectCode)
      .values({ projectId: id, paths: [], installed })
      .onConflictDoUpdate({ target: projectCode.projectId, set: { installed } })
      .run()
  }

  #codeOf(id: string) {
    return this.#queries.select().from(projectCode).where(eq(projectCode.projectId, id)).get()
  }

  /** Records that the bring-up waits for the variables `keys`. */
  markAwaitingSecrets({ id, serverId, accountId }: ProjectRow, keys: string[]): void {
    this.#queries.transaction(() => {
      this.#updateRow(id, this.#entering(id, 'awaiting_secrets'))
      this.#outbox.emit(accountId, 'project.secrets_required', {
        project_id: id,
        server_id: serverId,
        keys,
      })
    })
  }

  /**
   * Records that the bring-up has ended and the app responds.
   *
   * @param url the app's URL; null while the project is private
   * @param warnings what keeps a visitor from seeing its pages as they are meant
   */
  markReady({ id, serverId, accountId }: ProjectRow, url: string | null, warnings: readonly string[]): void {
    this.#queries.transaction(() => {
      this.#updateRow(id, { ...this.#entering(id, 'ready'), runtimeStatus: 'running', warnings })
      this.#outbox.emit(accountId, 'project.ready', { project_id: id, server_id: serverId, url })
    })
  }

  /** Records that the app responds, which its last bring-up did not achieve. */
  markRecovered(id: string): void {
    this.#updateRow(id, { ...this.#entering(id, 'ready'), runtimeStatus: 'running' })
  }

  /** Records that the bring-up failed in `initPhase`. `log` is the end of its log. */
  markFailed({ id, serverId, accountId }: ProjectRow, initPhase: InitPhase, log: string): void {
    this.#queries.transaction(() => {
      this.#updateRow(id, this.#entering(id, 'failed'))
      this.#outbox.emit(accountId, 'project.init_failed', {
        project_id: id,
        server_id: serverId,
        init_phase: initPhase,
        log,
      })
    })
  }

  /** Records whether the app runs. One that was never ready stays unbuilt. */
  setRuntimeStatus(id: string, runtimeStatus: RuntimeStatus): void {
    const now = this.find(id)?.runtimeStatus
    if (now !== undefined && now !== 'unbuilt' && now !== runtimeStatus)
      this.#updateRow(id, { runtimeStatus })
  }

  /** Deletes a project with its variables. */
  delete(row: ProjectRow): void {
    const { id, serverId } = row
    this.#queries.transaction(() => {
      this.#secrets.drop(serverId, id)
      this.#queries.delete(projects).where(eq(projects.id, id)).run()
      this.notifyChange(row)
    })
  }

  /** Returns the changes of a project whose bring-up comes to a phase. */
  #entering(id: string, phase: InitPhase): { initPhase: InitPhase; initPhases: readonly PhaseEntry[] } {
    const entered = this.find(id)?.initPhases ?? []
    const isThere = entered.at(-1)?.phase === phase
    return {
      initPhase: phase,
      initPhases: isThere ? entered : [...entered, { phase, at: this.#clock.now() }],
    }
  }

  #updateRow(id: string, changes: Partial<ProjectRow>): void {
    const changed = this.#queries
      .update(projects)
      .set({ ...changes, updatedAt: this.#clock.now() })
      .where(eq(projects.id, id))
      .returning({ id: projects.id, accountId: projects.accountId, serverId: projects.serverId })
      .get()
    if (changed) this.notifyChange(changed)
  }

  /** Notifies of a change of a project, which may not be stored. */
  notifyChange({ id, accountId, serverId }: Pick<ProjectRow, 'id' | 'accountId' | 'serverId'>): void {
    this.#changes.notify('project', id, accountId, serverId)
  }

  #listAll(which: ReturnType<typeof eq> | undefined): ProjectRow[] {
    return this.#queries.select().from(projects).where(and(which)).orderBy(desc(sql`rowid`)).all()
  }
}
