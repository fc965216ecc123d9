import { accountCaller, type Caller } from '../../../http/caller.ts'
import type { Project } from '../../../resources/projects/model.ts'
import type { ProjectsService } from '../../../resources/projects/service.ts'
import { projectDirectory } from '../../../resources/projects/table.ts'
import type { Declared } from '../declared.ts'
import type { ProjectFixture, Variables } from '../settle.ts'
import type { Applying } from './applying.ts'
import { putFiles } from './files.ts'
import { changed } from './servers.ts'

/** Lines of a project's log that a refusal tells. */
const TOLD_LINES = 10

/** What making and mending one project works on. */
interface Work {
  applying: Applying
  projects: ProjectsService
  caller: Caller
  serverId: string
}

/**
 * Makes and mends projects, and waits until each has come as far as its file says: one after the other, so that
 * ids, ports and events come in the same order in every run.
 */
export async function applyProjects(applying: Applying): Promise<void> {
  if (applying.fixtures.projects.length === 0) return
  const projects = await applying.services.projects()
  for (const one of applying.fixtures.projects) {
    const serverId = applying.made('server', one.value.server)
    const caller = accountCaller(applying.services.servers.find(serverId)?.accountId ?? '')
    const work = { applying, projects, caller, serverId }
    const known = applying.records.find('project', one.name)?.id
    const present = known !== undefined && projects.owns(caller.accountId, known) ? known : undefined
    const id = await (present === undefined ? make(work, one) : mend(work, one, present))
    await await_(work, one, id)
  }
}

/** What a project's code comes from, hashed: it may hold credentials. Null where it comes with the file. */
export function sourceOf({ template, source }: ProjectFixture): string {
  const given = source ?? (template === undefined ? null : { type: 'template', template })
  return new Bun.CryptoHasher('sha256').update(JSON.stringify(given)).digest('hex')
}

/** Whether there is any code to bring up. */
const hasCode = ({ template, source, files }: ProjectFixture): boolean =>
  template !== undefined || files !== null || (source !== undefined && source.type !== 'blank')

async function make(work: Work, one: Declared<ProjectFixture>): Promise<string> {
  const { applying, projects, caller, serverId } = work
  const { name = one.name, description, visibility, lifecycle, template, source, files } = one.value
  const wishes = {
    name,
    ...(description === undefined ? {} : { description }),
    ...(visibility ? { visibility } : {}),
    ...(lifecycle ? { lifecycle } : {}),
    ...(template === undefined ? {} : { template }),
    ...(source ? { source } : {}),
    env: variablesOf(applying, one),
  }
  const { id } = await one.telling(() => projects.create(caller, serverId, wishes, null))
  applying.keep('project', one.name, id, () => projects.delete(caller, id), sourceOf(one.value))
  if (files) {
    await putFiles(applying, one, { caller, serverId, folder: projectDirectory(projects.getRow(caller, id)) })
    await one.telling(() => projects.init(caller, id, {}))
  }
  return id
}

async function mend(work: Work, one: Declared<ProjectFixture>, id: string): Promise<string> {
  const { applying, projects, caller, serverId } = work
  const project = projects.get(caller, id)
  await one.telling(() => projects.update(caller, id, differing(project, one.value)))
  // The names that have a value of the project's own.
  const { keys } = projects.setSecrets(caller, id, { secrets: {} })
  const all = applying.services.secrets.environment(serverId, id)
  const present = Object.fromEntries(keys.map((name) => [name, all[name] ?? '']))
  const secrets = changed(variablesOf(applying, one), present)
  await one.telling(() => projects.setSecrets(caller, id, { secrets }), 'secrets')
  const folder = projectDirectory(projects.getRow(caller, id))
  const isChanged = await putFiles(applying, one, { caller, serverId, folder })
  const { until = 'ready' } = one.value
  const { init_phase } = await projects.waitForBringUp(caller, id)
  const isBehind = until === 'ready' && init_phase !== 'ready'
  if (hasCode(one.value) && (isChanged || isBehind)) await one.telling(() => projects.init(caller, id, {}))
  return id
}

/** Waits until a project has come as far as its file says. @throws StartupError where it ends elsewhere */
async function await_({ applying, projects, caller }: Work, one: Declared<ProjectFixture>, id: string) {
  const { until = hasCode(one.value) ? 'ready' : 'nothing' } = one.value
  if (until === 'nothing') return
  const { init_phase } = await orEnded(projects.waitForBringUp(caller, id), applying.ended)
  if (init_phase === until) return
  const lines = await projects.readLog(caller, id, TOLD_LINES)
  const log = lines.map(({ text }) => `\n  ${text}`).join('')
  throw one.refusal(`it came to "${init_phase}", not to "${until}". The end of its log:${log}\n`)
}

/** Gives up waiting when berth is to end. */
async function orEnded<T>(work: Promise<T>, ended: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = () => reject(ended.reason)
  ended.addEventListener('abort', abort)
  if (ended.aborted) abort()
  return Promise.race([work, promise]).finally(() => ended.removeEventListener('abort', abort))
}

/** What of a project is otherwise than its file says. */
function differing(project: Project, { name, description, visibility, lifecycle }: ProjectFixture) {
  const wanted = Object.entries({ name, description, visibility, lifecycle })
  const differs = ([field, value]: [string, unknown]) =>
    value !== undefined && project[field as keyof Project] !== value
  return Object.fromEntries(wanted.filter(differs))
}

/** The variables of a project, those that stand apart from it too. */
function variablesOf({ fixtures }: Applying, { name, value }: Declared<ProjectFixture>): Variables {
  const apart = fixtures.secrets.filter((one) => one.value.project === name)
  return Object.assign({}, value.secrets, ...apart.map((one) => one.value.values))
}
