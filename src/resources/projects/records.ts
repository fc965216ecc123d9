import { and, count, desc, eq, sql } from 'drizzle-orm'
import type { AppPlan } from '../../hosting/app-runtime/plan.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Notifier } from '../../runtime/notifier.ts'
import type { Queries } from '../../storage/database.ts'
import type { Outbox } from '../events/outbox.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { InitPhase, RuntimeStatus } from './model.ts'
import { type ProjectRow, projects } from './table.ts'

/** Dependencies of the records. */
export interface RecordsDependencies {
  queries: Queries
  clock: Clock
  outbox: Outbox
  /** Notified of every change. */
  changes: Notifier
  secrets: SecretsService
}

/** Stores the records of projects. The events and charges of a change are written in its transaction. */
export class ProjectRecords {
  readonly #queries: Queries
  readonly #clock: Clock
  readonly #outbox: Outbox
  readonly #changes: Notifier
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

  /** All there are. */
  listAll(): ProjectRow[] {
    return this.#listAll(undefined)
  }

  /** How many a server has. */
  count(serverId: string): number {
    const counted = this.#queries.select({ n: count() }).from(projects).where(eq(projects.serverId, serverId))
    return counted.get()?.n ?? 0
  }

  /** One, whosever it is. */
  find(id: string): ProjectRow | undefined {
    return this.#queries.select().from(projects).where(eq(projects.id, id)).get()
  }

  /** The slugs in use, of all accounts. */
  slugs(): Set<string> {
    const rows = this.#queries.select({ slug: projects.slug }).from(projects).all()
    return new Set(rows.map(({ slug }) => slug))
  }

  /** Writes a new project with its first variables. */
  add(row: typeof projects.$inferInsert, variables: Readonly<Record<string, string>>): ProjectRow {
    return this.#queries.transaction(() => {
      const added = this.#queries.insert(projects).values(row).returning().get()
      this.#secrets.add(row.serverId, row.id, variables)
      return added
    })
  }

  /** Changes the fields that callers may change. */
  change(
    id: string,
    changes: Partial<Pick<ProjectRow, 'name' | 'description' | 'visibility' | 'lifecycle'>>,
  ): void {
    this.#update(id, changes)
  }

  /** Records the begin of a bring-up with its own run id. */
  begins(id: string, initRunId: string, initPhase: InitPhase, proceed: boolean): void {
    this.#update(id, { initRunId, initPhase, proceed })
  }

  /** Records that the bring-up continues without the missing variables. */
  proceeds(id: string): void {
    this.#update(id, { proceed: true })
  }

  /** The bring-up is in this phase now. */
  enters(id: string, initPhase: InitPhase): void {
    this.#update(id, { initPhase })
  }

  /** How the app is installed and started was found out. */
  planned(id: string, plan: AppPlan): void {
    this.#update(id, { plan })
  }

  /** The bring-up waits for variables of these names. */
  awaits({ id, serverId, accountId }: ProjectRow, keys: string[]): void {
    this.#queries.transaction(() => {
      this.#update(id, { initPhase: 'awaiting_secrets' })
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
   */
  ready({ id, serverId, accountId }: ProjectRow, url: string | null): void {
    this.#queries.transaction(() => {
      this.#update(id, { initPhase: 'ready', runtimeStatus: 'running' })
      this.#outbox.emit(accountId, 'project.ready', { project_id: id, server_id: serverId, url })
    })
  }

  /** The bring-up is over without success, in `initPhase`; `log` is its end. */
  failed({ id, serverId, accountId }: ProjectRow, initPhase: InitPhase, log: string): void {
    this.#queries.transaction(() => {
      this.#update(id, { initPhase: 'failed' })
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
    if (now !== undefined && now !== 'unbuilt' && now !== runtimeStatus) this.#update(id, { runtimeStatus })
  }

  /** Deletes a project with its variables. */
  remove({ id, serverId }: ProjectRow): void {
    this.#queries.transaction(() => {
      this.#secrets.drop(serverId, id)
      this.#queries.delete(projects).where(eq(projects.id, id)).run()
      this.#changes.notify()
    })
  }

  #update(id: string, changes: Partial<ProjectRow>): void {
    this.#queries
      .update(projects)
      .set({ ...changes, updatedAt: this.#clock.now() })
      .where(eq(projects.id, id))
      .run()
    this.#changes.notify()
  }

  #listAll(which: ReturnType<typeof eq> | undefined): ProjectRow[] {
    return this.#queries.select().from(projects).where(and(which)).orderBy(desc(sql`rowid`)).all()
  }
}
