import { blob, customType, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { CommandOwner } from '../../compute/sandbox.ts'
import type { AppCrash, FailedChange } from '../../hosting/app.ts'
import { type AppPlan, storedPlan } from '../../hosting/app.ts'
import type { HostedApp } from '../../hosting/hosting.ts'
import { toIso } from '../../runtime/clock.ts'
import type {
  AppWorker,
  AppCrash as CrashModel,
  DetectedApp,
  InitPhase,
  Project,
  RuntimeStatus,
} from './model.ts'
import type { Lifecycle, ProjectKind, Visibility } from './traits.ts'

/** A phase that a bring-up has come to, and when, in milliseconds. */
export interface PhaseEntry {
  readonly phase: InitPhase
  readonly at: number
}

/** A column of a plan, which an earlier version may have stored. */
export const appPlan = customType<{ data: AppPlan; driverData: string }>({
  dataType: () => 'text',
  toDriver: (plan) => JSON.stringify(plan),
  fromDriver: (text) => storedPlan(JSON.parse(text)),
})

/** Projects. */
export const projects = sqliteTable('projects', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  serverId: text('server_id').notNull(),
  name: text('name').notNull(),
  slug: text('slug').notNull(),
  description: text('description'),
  visibility: text('visibility').$type<Visibility>().notNull(),
  lifecycle: text('lifecycle').$type<Lifecycle>().notNull(),
  template: text('template'),
  /** Set if its creation said that it is a worker. */
  kind: text('kind').$type<ProjectKind>(),
  /** The app's own directory, relative to its code; empty for the code's own directory. */
  directory: text('directory').notNull().default(''),
  /** The source of its code, as sealed JSON; null for a blank project. */
  source: blob('source', { mode: 'buffer' }),
  port: integer('port').notNull(),
  runtimeStatus: text('runtime_status').$type<RuntimeStatus>().notNull(),
  initRunId: text('init_run_id'),
  initPhase: text('init_phase').$type<InitPhase>(),
  /** The phases that the last bring-up has come to, in order. */
  initPhases: text('init_phases', { mode: 'json' }).$type<readonly PhaseEntry[]>().notNull().default([]),
  /** Whether the bring-up continues without the missing variables. */
  proceed: integer('proceed', { mode: 'boolean' }).notNull().default(false),
  /** How its app is installed, built and started, as detected last. */
  plan: appPlan('plan'),
  /** A push that berth has undone at a start, because it had not come up; null once another follows. */
  failedChange: text('failed_change', { mode: 'json' }).$type<FailedChange>(),
  /** What keeps a visitor from seeing its pages as they are meant, of the last version that came up. */
  warnings: text('warnings', { mode: 'json' }).$type<readonly string[]>().notNull().default([]),
  createdAt: integer('created_at').notNull(),
  updatedAt: integer('updated_at').notNull(),
})

/** What is known of the code of projects: one row for each that got any. */
export const projectCode = sqliteTable('project_code', {
  projectId: text('project_id').primaryKey(),
  /** Files and links that came from outside, relative to the project's directory. */
  paths: text('paths', { mode: 'json' }).$type<readonly string[]>().notNull(),
  /** Fingerprint of what its packages were installed from; null if they are not, or it is not known. */
  installed: text('installed'),
})

/** A project as it is stored. */
export type ProjectRow = typeof projects.$inferSelect

/**
 * Converts a row to the public form.
 *
 * @param url the project's URL, whatever its visibility
 * @param app its app, if it is open
 */
export const toProject = (
  row: ProjectRow,
  url: string,
  app: Pick<HostedApp, 'crash' | 'failedChange' | 'isPortTaken' | 'workers'> | undefined,
): Project => {
  const failed = app?.failedChange ?? row.failedChange
  return {
    id: row.id,
    server_id: row.serverId,
    name: row.name,
    slug: row.slug,
    description: row.description,
    visibility: row.visibility,
    lifecycle: row.lifecycle,
    runtime_status: row.runtimeStatus,
    template: row.template,
    directory: row.directory || null,
    url: hasUrl(row) ? url : null,
    ...(row.initRunId === null ? {} : { init_run_id: row.initRunId }),
    init_phase: row.initPhase,
    ...(row.initPhases.length > 0 && {
      init_phases: row.initPhases.map(({ phase, at }) => ({ phase, began_at: toIso(at) })),
    }),
    ...(row.plan && { app: toDetectedApp(row.plan) }),
    warnings: [...row.warnings],
    workers: toWorkers(row.plan, app),
    ...(app?.crash && { crash: toCrash(app.crash) }),
    ...(failed && { failed_change: toFailedChange(failed) }),
    ...(hasUrl(row) && app?.isPortTaken && { port_taken: true }),
    created_at: toIso(row.createdAt),
    updated_at: toIso(row.updatedAt),
  }
}

/** Reports whether a project has a URL: a public one has, unless it is a worker. */
export const hasUrl = ({ visibility, kind, plan }: ProjectRow): boolean =>
  visibility === 'public' && kind !== 'worker' && plan?.start.kind !== 'workers'

/** Returns the workers of an app as the API shows them; those of a plan that does not run are stopped. */
export const toWorkers = (plan: AppPlan | null, app: Pick<HostedApp, 'workers'> | undefined): AppWorker[] => {
  const known = new Map(app?.workers.map((one) => [one.name, one]))
  return Object.entries(plan?.workers ?? {}).map(([name, command]) => {
    const { status = 'stopped', exitCode = null, restarts = 0 } = known.get(name) ?? {}
    return { name, command, status, exit_code: exitCode, restarts }
  })
}

/** Returns a change that did not come up as the API shows it. */
export const toFailedChange = ({ reason, at }: FailedChange) => ({ reason, at: toIso(at) })

/** Returns how an app is started as the API shows it. */
export const toDetectedApp = (plan: AppPlan): DetectedApp => {
  const {
    kind,
    directory,
    install,
    build,
    release,
    start,
    workers,
    health,
    tools,
    evidence,
    leftOut,
    others,
    warnings,
  } = plan
  const isCommand = start.kind === 'command'
  return {
    kind,
    directory: directory || '.',
    serves: start.kind === 'files' ? start.folder || '.' : null,
    install,
    build,
    start: isCommand ? start.command : null,
    release,
    workers: { ...workers },
    port: isCommand ? start.port : null,
    health,
    tools: tools.map(({ wantedBy, ...tool }) => ({ ...tool, wanted_by: wantedBy })),
    evidence: [...evidence],
    left_out: [...leftOut],
    others: others.map(({ berthJson, ...other }) => ({
      ...other,
      directory: other.directory || '.',
      berth_json: berthJson,
    })),
    warnings: [...warnings],
  }
}

/** Returns a crash as the API shows it. */
export const toCrash = ({ reason, exitCode, since, restart }: AppCrash): CrashModel => ({
  reason,
  exit_code: exitCode,
  since: toIso(since),
  restarts_at: restart && toIso(restart.at),
  attempt: restart?.attempt ?? null,
})

/** The directory of a server's workspace that contains its projects. */
export const PROJECTS_DIRECTORY = 'projects'

/** Returns what the processes of a project belong to. */
export const projectOwner = (id: string): CommandOwner => ({ kind: 'project', id })

/** Returns the directory of a project's code in its server's workspace. */
export const projectDirectory = ({ slug }: Pick<ProjectRow, 'slug'>): string =>
  `${PROJECTS_DIRECTORY}/${slug}`
