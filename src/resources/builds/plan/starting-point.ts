import type { Agent } from '../../../agents/agents.ts'
import { AppError, NoAppFound } from '../../../hosting/app.ts'
import { SandboxMachine } from '../../../hosting/detection/detect.ts'
import type { Preparation } from '../../../hosting/hosting.ts'
import { messageOf } from '../../../runtime/error-info.ts'
import type { TemplateCatalog } from '../../templates/catalog.ts'
import type { ProjectTemplate } from '../../templates/model.ts'
import { type BuildContext, BuildFailure } from '../context.ts'
import { type CopiedFiles, findCopiedFiles } from '../files/copied.ts'
import { planScaffold } from '../files/scaffold.ts'
import type { Snapshot } from '../files/snapshot.ts'
import { BuildTranscript } from '../implement/transcript.ts'
import type { BuildRow } from '../table.ts'
import { chooseByKeywords, type TemplateChoice } from './choose.ts'
import type { StartingPoint } from './document.ts'
import { isUnmodifiedPlan } from './file.ts'
import { NEEDED_TOOLS } from './keywords.ts'

/** The inputs of `chooseStartingPoint`. */
interface StartingPointDependencies {
  preparation: Preparation
  catalog: TemplateCatalog
  agent: Agent
  /** Earlier builds of the server that copied a template, newest first. */
  earlier: readonly BuildRow[]
  snapshot: Snapshot
}

/**
 * Chooses what a build starts from: the app in the workspace, or a template for the goal. Replaces an app that is an
 * unchanged copy from an earlier build if the goal asks for another template.
 */
export async function chooseStartingPoint(
  context: BuildContext,
  dependencies: StartingPointDependencies,
): Promise<StartingPoint> {
  const { workspace, log } = context
  const { catalog, snapshot, earlier: builds } = dependencies
  const copied = await findCopiedFiles({
    workspace,
    snapshot,
    catalog,
    builds,
    isPlan: (path) => isUnmodifiedPlan(workspace, path),
  })
  const present = await findApp(context, dependencies.preparation)
  if (present !== null && copied === null) {
    return {
      kind: 'app',
      description: present,
      reason: 'It is not from an earlier build, and so it is yours.',
    }
  }
  if (present !== null && copied !== null && copied.modification !== null) {
    const reason = `An earlier build began it from the template ${copied.template}; since then ${copied.modification}, so that it stays.`
    return { kind: 'app', description: present, reason }
  }
  const choice = await chooseTemplate(
    context,
    dependencies,
    present === null ? null : (copied?.template ?? null),
  )
  const scaffold = await planScaffold(workspace, catalog, choice.template.id, copied)
  if (present !== null && copied !== null && isComplete(copied, choice, scaffold.copies.length)) {
    const reason = `An earlier build began it from the template ${copied.template}, which fits this goal too. ${choice.reason}`
    return { kind: 'app', description: present, reason }
  }
  log.append('plan', `Template ${choice.template.id}: ${choice.reason}`)
  return { kind: 'template', choice, scaffold }
}

/** Reports whether the workspace contains the whole chosen template from an earlier build. */
const isComplete = ({ files, template }: CopiedFiles, choice: TemplateChoice, copies: number): boolean =>
  template === choice.template.id && [...files.values()].filter((of) => of === template).length >= copies

/** Describes the app in the workspace; null if there is none. */
async function findApp({ row, sandbox, workspace, log }: BuildContext, preparation: Preparation) {
  try {
    const { kind } = await preparation.plan({
      owner: { kind: 'build', id: row.id },
      serverId: row.serverId,
      sandbox,
      workspace,
      directory: '',
      log,
    })
    return kind
  } catch (error) {
    if (error instanceof NoAppFound) return null
    // There is an app with a mistake that the agent may fix.
    if (error instanceof AppError)
      return `one that cannot be started yet (${error.message.replace(/\.$/, '')})`
    throw error
  }
}

/**
 * Chooses a template: the agent if it can plan, else by the goal's keywords.
 *
 * @param present id of the template that the app in the workspace was copied from
 */
async function chooseTemplate(
  context: BuildContext,
  { agent, catalog }: StartingPointDependencies,
  present: string | null,
): Promise<TemplateChoice> {
  const { row, log, signal } = context
  const templates = await listUsableTemplates(context, catalog)
  if (agent.plan === undefined) return chooseByKeywords(row.goal, templates, present)
  log.masks.add(agent.secrets ?? [])
  const transcript = new BuildTranscript(log, 'plan')
  try {
    const plan = await agent.plan({
      id: row.id,
      goal: row.goal,
      templates: templates.map(({ id, label, description }) => ({ id, label, description })),
      report: (event) => transcript.report(event),
      signal,
    })
    const template = templates.find(({ id }) => id === plan.template)
    if (template) return { template, reason: 'The agent chose it.', steps: plan.steps }
    throw new Error(`it chose ${JSON.stringify(plan.template)}, which is none of the templates.`)
  } catch (error) {
    signal.throwIfAborted()
    const reason = messageOf(error)
    log.append('plan', `The agent could not plan: ${reason} The words of the goal decide.`)
    const choice = chooseByKeywords(row.goal, templates, present)
    return { ...choice, reason: `${choice.reason} (The agent could not plan: ${reason})` }
  } finally {
    transcript.end()
  }
}

/** Returns the templates whose programs are installed on this machine. */
async function listUsableTemplates(
  { sandbox, log }: BuildContext,
  catalog: TemplateCatalog,
): Promise<ProjectTemplate[]> {
  const tools = new SandboxMachine(sandbox)
  const found: ProjectTemplate[] = []
  for (const template of catalog.list()) {
    const tool = NEEDED_TOOLS[template.id]
    if (tool === undefined || (await tools.has(tool))) found.push(template)
    else log.append('plan', `The template ${template.id} is left out: ${tool} is not installed.`)
  }
  if (found.length === 0) throw new BuildFailure('There is no template that this machine can run.')
  return found
}
