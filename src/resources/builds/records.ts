import { and, asc, desc, eq, inArray, isNotNull, type SQL, sql } from 'drizzle-orm'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Queries } from '../../storage/database.ts'
import type { Metering } from '../accounts/metering.ts'
import type { Changes } from '../changes/types.ts'
import type { ServersService } from '../servers/service.ts'
import type { StepKey } from './steps.ts'
import { type BuildRow, builds, pendingSteps, UNFINISHED_STATUSES } from './table.ts'

/** Dependencies of the records. */
export interface RecordsDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  metering: Metering
  /** Notified of every change. */
  changes: Changes
  servers: Pick<ServersService, 'records'>
}

/** What a phase adds to the record. */
export type BuildProgress = Partial<Pick<BuildRow, 'artifacts' | 'template' | 'scaffold'>>

/** Most earlier builds whose template files are looked for in a workspace. @bound client */
const MAX_SCAFFOLDED = 20

/**
 * Stores builds. A server's `building` status changes in the transaction in which a build starts or ends, so the two
 * agree even if berth is killed.
 */
export class BuildRecords {
  readonly #dependencies: RecordsDependencies
  readonly #queries: Queries

  constructor(dependencies: RecordsDependencies) {
    this.#dependencies = dependencies
    this.#queries = dependencies.queries
  }

  /** Returns the builds of a server, newest first. */
  listByServer(serverId: string): BuildRow[] {
    return this.#list(eq(builds.serverId, serverId))
  }

  /** Returns the builds of all servers of an account, newest first. */
  listByAccount(accountId: string): BuildRow[] {
    return this.#list(eq(builds.accountId, accountId))
  }

  #list(which: SQL): BuildRow[] {
    const found = this.#queries.select().from(builds).where(which)
    return found.orderBy(desc(sql`rowid`)).all()
  }

  /** Returns the ids of a server's started and queued builds, newest first. */
  listIds(serverId: string): { started: string[]; queued: string[] } {
    const { id, status } = builds
    const found = this.#queries.select({ id, status }).from(builds).where(eq(builds.serverId, serverId))
    const all = found.orderBy(desc(sql`rowid`)).all()
    const idsOf = (isQueued: boolean): string[] =>
      all.filter((one) => (one.status === 'queued') === isQueued).map((one) => one.id)
    return { started: idsOf(false), queued: idsOf(true) }
  }

  /** Returns a build of any account, or undefined. */
  find(id: string): BuildRow | undefined {
    return this.#queries.select().from(builds).where(eq(builds.id, id)).get()
  }

  /** Returns the waiting and running builds of a server, or of all servers, oldest first. */
  listUnfinished(serverId?: string): BuildRow[] {
    const which = serverId === undefined ? undefined : eq(builds.serverId, serverId)
    const found = this.#queries.select().from(builds)
    return found
      .where(and(which, inArray(builds.status, [...UNFINISHED_STATUSES])))
      .orderBy(asc(sql`rowid`))
      .all()
  }

  /** Returns the last builds of a server that copied a template, newest first. */
  listScaffolded(serverId: string): BuildRow[] {
    const found = this.#queries.select().from(builds)
    return found
      .where(and(eq(builds.serverId, serverId), isNotNull(builds.template)))
      .orderBy(desc(sql`rowid`))
      .limit(MAX_SCAFFOLDED)
      .all()
  }

  /** Stores a new queued build and charges it. */
  add(accountId: string, serverId: string, goal: string): BuildRow {
    const { clock, ids, metering } = this.#dependencies
    return this.#queries.transaction(() => {
      const id = ids.next('bld', (taken) => this.find(taken) !== undefined)
      const values = { id, accountId, serverId, goal, status: 'queued' as const, createdAt: clock.now() }
      const row = this.#queries
        .insert(builds)
        .values({ ...values, steps: pendingSteps(), artifacts: [] })
        .returning()
        .get()
      metering.charge(accountId, serverId, 'build')
      this.#notify(row)
      return row
    })
  }

  /** Marks a queued build as running. @returns false if it has ended meanwhile */
  markRunning(row: BuildRow): boolean {
    const { id, serverId } = row
    return this.#queries.transaction(() => {
      if (this.find(id)?.status !== 'queued') return false
      this.#update(row, { status: 'running' })
      this.#dependencies.servers.records.setBuilding(serverId, true)
      return true
    })
  }

  /** Marks a phase as running and those before it as done. Does nothing if the build has ended. */
  setRunningStep(id: string, key: StepKey, progress: BuildProgress = {}): void {
    this.#queries.transaction(() => {
      const row = this.find(id)
      if (row?.status !== 'running') return
      const now = this.#dependencies.clock.now()
      const current = row.steps.findIndex((step) => step.key === key)
      const steps = row.steps.map((step, n) => {
        if (n > current) return { ...step, status: 'pending' as const }
        const { beganAt = now, endedAt = now } = step
        if (n < current) return { ...step, status: 'done' as const, beganAt, endedAt }
        return { ...step, status: 'running' as const, beganAt }
      })
      this.#update(row, { ...progress, steps })
    })
  }

  /** Notes that a phase had nothing to do. */
  markSkipped(id: string, key: StepKey): void {
    this.#queries.transaction(() => {
      const row = this.find(id)
      if (row?.status !== 'running') return
      const steps = row.steps.map((step) => (step.key === key ? { ...step, skipped: true as const } : step))
      this.#update(row, { steps })
    })
  }

  /**
   * Marks a build as completed. Does nothing if it is.
   *
   * @param url the app's URL; null if the build failed, which sets its running phase back to pending
   */
  markCompleted({ id, serverId }: BuildRow, url: string | null, progress: BuildProgress = {}): void {
    this.#queries.transaction(() => {
      const row = this.find(id)
      if (row === undefined || row.status === 'completed') return
      const now = this.#dependencies.clock.now()
      const steps = row.steps.map((step) => {
        const { beganAt = now, endedAt = now } = step
        if (url !== null) return { ...step, status: 'done' as const, beganAt, endedAt }
        return step.status === 'running' ? { ...step, status: 'pending' as const, endedAt } : step
      })
      this.#update(row, { ...progress, status: 'completed', url, steps })
      if (row.status === 'running') this.#dependencies.servers.records.setBuilding(serverId, false)
    })
  }

  /** Replaces the artifacts of a build. */
  setArtifacts(row: BuildRow, artifacts: readonly string[]): void {
    this.#update(row, { artifacts })
  }

  #update(row: BuildRow, changes: Partial<BuildRow>): void {
    this.#queries.update(builds).set(changes).where(eq(builds.id, row.id)).run()
    this.#notify(row)
  }

  #notify({ id, accountId, serverId }: BuildRow): void {
    this.#dependencies.changes.notify('build', id, accountId, serverId)
  }
}
