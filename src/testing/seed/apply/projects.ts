import { accountCaller, type Caller } from '../../../http/caller.ts'
import type { Project } from '../../../resources/projects/model.ts'
import type { ProjectsService } from '../../../resources/projects/service.ts'
import type { ProjectSource } from '../../../resources/projects/sources/model.ts'
import { projectDirectory } from '../../../resources/projects/table.ts'
import { orAborted } from '../../../runtime/wait.ts'
import type { FixtureEntry } from '../fixtures.ts'
import type { FixtureVariables, ProjectFixture } from '../resolve.ts'
import type { ApplyContext } from './context.ts'
import { changedVariables, putFiles } from './servers.ts'

/** Phases without code that runs, which only a further bring-up changes. */
const IDLE_PHASES: ReadonlySet<Project['init_phase']> = new Set([null, 'failed', 'awaiting_secrets'])

/** Lines of a project's log in an error message. */
const SHOWN_LOG_LINES = 10

/** The context of creating or updating one project. */
interface ProjectContext {
  context: ApplyContext
  projects: ProjectsService
  caller: Caller
  serverId: string
}

/**
 * Creates and updates projects, and waits until each has reached the state that its file names. Works on one project
 * at a time, so ids, ports and events are in the same order in every run.
 */
export async function applyProjects(context: ApplyContext): Promise<void> {
  if (context.fixtures.projects.length === 0) return
  const projects = await context.services.projects()
  for (const one of context.fixtures.projects) {
    const serverId = context.idOf('server', one.value.server)
    const caller = accountCaller(context.services.servers.records.find(serverId)?.accountId ?? '')
    const work = { context, projects, caller, serverId }
    const known = context.records.find('project', one.name)?.id
    const present = known !== undefined && projects.owns(caller.accountId, known) ? known : undefined
    const id = await (present === undefined ? create(work, one) : update(work, one, present))
    if (context.mode === 'start') await waitForPhase(work, one, id)
  }
}

/** Returns the hash of a project's kind and source, which may contain credentials. */
export function sourceOf({ template, source, kind }: ProjectFixture): string {
  const code = source ?? (template === undefined ? null : { type: 'template', template })
  const given = kind === undefined ? code : { code, kind }
  return new Bun.CryptoHasher('sha256').update(JSON.stringify(given)).digest('hex')
}

/** Returns the source of a project's code. */
function codeOf({ template, source }: ProjectFixture): ProjectSource {
  return source ?? (template === undefined ? { type: 'blank' } : { type: 'template', template })
}

/** Whether there is any code to bring up. */
const hasCode = ({ template, source, files }: ProjectFixture): boolean =>
  template !== undefined || files !== null || (source !== undefined && source.type !== 'blank')

async function create(work: ProjectContext, one: FixtureEntry<ProjectFixture>): Promise<string> {
  const { context, projects, caller, serverId } = work
  const { name = one.name, description, visibility, lifecycle, kind, template, source, files } = one.value
  const { app_directory: directory } = one.value
  const params = {
    name,
    ...(description === undefined ? {} : { description }),
    ...(visibility ? { visibility } : {}),
    ...(lifecycle ? { lifecycle } : {}),
    ...(kind ? { kind } : {}),
    ...(template === undefined || directory !== undefined ? {} : { template }),
    ...(source ? { source } : {}),
    ...(directory === undefined ? {} : { source: { ...codeOf(one.value), directory } }),
    env: variablesOf(context, one),
  }
  const { id } = await one.run(() => projects.create(caller, serverId, params, null))
  context.recordCreated('project', one.name, id, () => projects.delete(caller, id), sourceOf(one.value))
  if (files) {
    await putFiles(context, one, {
      caller,
      serverId,
      directory: projectDirectory(projects.getRow(caller, id)),
    })
    await one.run(() => projects.init(caller, id, {}))
  }
  return id
}

async function update(work: ProjectContext, one: FixtureEntry<ProjectFixture>, id: string): Promise<string> {
  const { context, projects, caller, serverId } = work
  const project = projects.get(caller, id)
  await one.run(() => projects.update(caller, id, changedFields(project, one.value)))
  // The names that have a value of the project's own.
  const { keys } = projects.setSecrets(caller, id, { secrets: {} })
  const all = context.services.secrets.environment(serverId, id)
  const present = Object.fromEntries(keys.map((name) => [name, all[name] ?? '']))
  const secrets = changedVariables(variablesOf(context, one), present)
  await one.run(() => projects.setSecrets(caller, id, { secrets }), 'secrets')
  const directory = projectDirectory(projects.getRow(caller, id))
  // "berth up" names it with the directory that it sends.
  const { app_directory: wanted } = one.value.directory === undefined ? one.value : {}
  const isMoved = wanted !== undefined && (await one.run(() => projects.setDirectory(caller, id, wanted)))
  const isChanged = (await putFiles(context, one, { caller, serverId, directory })) || isMoved
  const { until = 'ready' } = one.value
  const { init_phase } = await (context.mode === 'up' && !isChanged
    ? projects.get(caller, id)
    : projects.waitForBringUp(caller, id))
  const isBehind = until === 'ready' && IDLE_PHASES.has(init_phase)
  if (hasCode(one.value) && (isChanged || isBehind)) await one.run(() => projects.init(caller, id, {}))
  return id
}

/**
 * Waits until a project has reached the state that its file names.
 *
 * @throws StartupError if it ends in another
 */
async function waitForPhase(
  { context, projects, caller }: ProjectContext,
  one: FixtureEntry<ProjectFixture>,
  id: string,
) {
  const { until = hasCode(one.value) ? 'ready' : 'nothing' } = one.value
  if (until === 'nothing') return
  const { init_phase } = await orAborted(projects.waitForBringUp(caller, id), context.ended)
  if (init_phase === until) return
  const log = await projects.openLog(caller, id)
  const lines = await log.select({ tail: SHOWN_LOG_LINES })
  const shown = lines.filter(({ phase }) => phase === undefined)
  const end = shown.map(({ text }) => `\n  ${text}`).join('')
  throw one.error(`it came to "${init_phase}", not to "${until}". The end of its log:${end}\n`)
}

/** Returns the fields of a project that differ from its file. */
function changedFields(project: Project, { name, description, visibility, lifecycle }: ProjectFixture) {
  const wanted = Object.entries({ name, description, visibility, lifecycle })
  const differs = ([field, value]: [string, unknown]) =>
    value !== undefined && project[field as keyof Project] !== value
  return Object.fromEntries(wanted.filter(differs))
}

/** Returns the variables of a project, including those given separately. */
function variablesOf(
  { fixtures }: ApplyContext,
  { name, value }: FixtureEntry<ProjectFixture>,
): FixtureVariables {
  const apart = fixtures.secrets.filter((one) => one.value.project === name)
  return Object.assign({}, value.secrets, ...apart.map((one) => one.value.values))
}
