import { and, asc, desc, eq, inArray, isNotNull, sql } from 'drizzle-orm'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Notifier } from '../../runtime/notifier.ts'
import type { Queries } from '../../storage/database.ts'
import type { Metering } from '../accounts/metering.ts'
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
  changes: Notifier
  servers: Pick<ServersService, 'setBuilding'>
}

/** What a phase leaves in the record. */
export type Progress = Partial<Pick<BuildRow, 'artifacts' | 'template' | 'scaffold'>>

/** Builds whose templates are looked for in a workspace. */
const MOST_SCAFFOLDED = 20

/**
 * The records of builds. Whether a server is being built on changes in the transaction in which a build of it begins
 * or ends, so that the two never contradict each other, whatever cuts berth short.
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
    const found = this.#queries.select().from(builds).where(eq(builds.serverId, serverId))
    return found.orderBy(desc(sql`rowid`)).all()
  }

  /** Ids of a server's builds that have had their turn, newest first, and of those that wait for it. */
  idsOf(serverId: string): { begun: string[]; queued: string[] } {
    const { id, status } = builds
    const found = this.#queries.select({ id, status }).from(builds).where(eq(builds.serverId, serverId))
    const all = found.orderBy(desc(sql`rowid`)).all()
    const idsOf = (isQueued: boolean): string[] =>
      all.filter((one) => (one.status === 'queued') === isQueued).map((one) => one.id)
    return { begun: idsOf(false), queued: idsOf(true) }
  }

  /** One, whosever it is. */
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

  /** The last ones of a server that copied a template, newest first. */
  scaffolded(serverId: string): BuildRow[] {
    const found = this.#queries.select().from(builds)
    return found
      .where(and(eq(builds.serverId, serverId), isNotNull(builds.template)))
      .orderBy(desc(sql`rowid`))
      .limit(MOST_SCAFFOLDED)
      .all()
  }

  /** Writes a new build that waits for its turn, and charges it. */
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
      return row
    })
  }

  /** Its turn has come. @returns false where it was ended while it waited */
  begins({ id, serverId }: BuildRow): boolean {
    return this.#queries.transaction(() => {
      if (this.find(id)?.status !== 'queued') return false
      this.#update(id, { status: 'running' })
      this.#dependencies.servers.setBuilding(serverId, true)
      return true
    })
  }

  /** A phase begins; those before it are done. Nothing changes for a build that is over. */
  enters(id: string, key: StepKey, progress: Progress = {}): void {
    this.#queries.transaction(() => {
      const row = this.find(id)
      if (row?.status !== 'running') return
      const at = row.steps.findIndex((step) => step.key === key)
      const steps = row.steps.map((step, n) => {
        const status = n < at ? ('done' as const) : n === at ? ('running' as const) : ('pending' as const)
        return { ...step, status }
      })
      this.#update(id, { ...progress, steps })
    })
  }

  /**
   * A build is over: with the URL where it answers, or without one, and then the phase that was under way counts as
   * never begun. Nothing changes for one that is over already.
   */
  ends({ id, serverId }: BuildRow, url: string | null, progress: Progress = {}): void {
    this.#queries.transaction(() => {
      const row = this.find(id)
      if (row === undefined || row.status === 'completed') return
      const steps = row.steps.map((step) => {
        if (url !== null) return { ...step, status: 'done' as const }
        return step.status === 'running' ? { ...step, status: 'pending' as const } : step
      })
      this.#update(id, { ...progress, status: 'completed', url, steps })
      if (row.status === 'running') this.#dependencies.servers.setBuilding(serverId, false)
    })
  }

  /** What a build that was cut short has made or changed is this. */
  revises({ id }: BuildRow, artifacts: readonly string[]): void {
    this.#update(id, { artifacts })
  }

  #update(id: string, changes: Partial<BuildRow>): void {
    this.#queries.update(builds).set(changes).where(eq(builds.id, id)).run()
    this.#dependencies.changes.notify()
  }
}
