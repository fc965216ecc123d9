import { eq } from 'drizzle-orm'
import { sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { AppPlan } from '../../hosting/app-runtime/plan.ts'
import type { Queries } from '../../storage/database.ts'

/** A change of files that has not come up yet. It says what a start has to do if berth is killed meanwhile. */
export interface UnfinishedChange {
  /** Of the app, relative to the workspace; empty for the workspace itself. */
  readonly directory: string
  /** Name of the staging directory with the files of before, or with those that replace them. */
  readonly staging: string
  /**
   * - `before`: the files of before are put back.
   * - `next`: they are too large to be kept, so the change of the files is completed.
   * - `rebuild`: they are back. Only packages and build are those of the other version.
   */
  readonly state: 'before' | 'next' | 'rebuild'
  /** Files that were not there before. */
  readonly added: readonly string[]
  /** Files that are removed. */
  readonly removed: readonly string[]
  /** Whether the app responded before the change. */
  readonly wasUp: boolean
  /** Whether the version was installed or built, over the packages and the build of before. */
  readonly isBuiltOver: boolean
  /** What the app was before: how it is started, and the paths of the code that came from outside. */
  readonly plan: AppPlan | null
  readonly paths: readonly string[]
  /** Paths of the code after the change. */
  readonly nextPaths: readonly string[]
  /** The app's own directory before the change, and after it; missing if neither is recorded apart from the plan. */
  readonly appDirectory?: string
  readonly nextAppDirectory?: string
}

/** Pushes whose version has not come up yet. */
const unfinishedPushes = sqliteTable('unfinished_pushes', {
  /** Of the project, or of the server whose deployment it is. */
  appId: text('app_id').primaryKey(),
  serverId: text('server_id').notNull(),
  change: text('change', { mode: 'json' }).$type<UnfinishedChange>().notNull(),
})

/** A push that has not come up, as it is stored. */
type UnfinishedPushRow = typeof unfinishedPushes.$inferSelect

/** Records the changes of files that have not come up yet, one for each app. */
export class UnfinishedPushes {
  readonly #queries: Queries

  constructor(queries: Queries) {
    this.#queries = queries
  }

  /** Returns all. */
  list(): UnfinishedPushRow[] {
    return this.#queries.select().from(unfinishedPushes).all()
  }

  /** Returns the change of an app, or undefined. */
  find(appId: string): UnfinishedChange | undefined {
    const row = this.#queries.select().from(unfinishedPushes).where(eq(unfinishedPushes.appId, appId)).get()
    return row?.change
  }

  /** Records a change, in place of an earlier one of the app. */
  put(appId: string, serverId: string, change: UnfinishedChange): void {
    const values = { appId, serverId, change }
    this.#queries
      .insert(unfinishedPushes)
      .values(values)
      .onConflictDoUpdate({ target: unfinishedPushes.appId, set: { change } })
      .run()
  }

  /** Forgets the change of an app: it came up, or its files are back. */
  drop(appId: string): void {
    this.#queries.delete(unfinishedPushes).where(eq(unfinishedPushes.appId, appId)).run()
  }
}
