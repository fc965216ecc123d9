import type { Agent } from '../../../agents/agent.ts'
import { AppError, NoAppFound } from '../../../hosting/app-runtime/plan.ts'
import { SandboxTools } from '../../../hosting/app-runtime/tools.ts'
import type { Preparation } from '../../../hosting/preparation.ts'
import { messageOf } from '../../../runtime/error-info.ts'
import type { TemplateCatalog } from '../../templates/catalog.ts'
import type { ProjectTemplate } from '../../templates/model.ts'
import { findOwnFiles, type OwnFiles } from '../files/own.ts'
import { planScaffold } from '../files/scaffold.ts'
import type { Snapshot } from '../files/snapshot.ts'
import { BuildTranscript } from '../implement/transcript.ts'
import type { BuildRow } from '../table.ts'
import { BuildFailure, type Work } from '../work.ts'
import { type Choice, chooseByWords } from './choose.ts'
import type { Beginning } from './document.ts'
import { isUntouchedPlan } from './file.ts'
import { NEEDED_TOOLS } from './keywords.ts'

/** What the decision is made from. */
export interface BeginParts {
  preparation: Preparation
  catalog: TemplateCatalog
  agent: Agent
  /** Earlier builds of the server that copied a template, newest first. */
  earlier: readonly BuildRow[]
  snapshot: Snapshot
}

/**
 * Decides what a build begins with: the app that is in the workspace, or a template for the goal. An app that is
 * nothing but what an earlier build copied gives way where the goal asks for another template.
 */
export async function decideBeginning(work: Work, parts: BeginParts): Promise<Beginning> {
  const { workspace, log } = work
  const { catalog, snapshot, earlier: builds } = parts
  const own = await findOwnFiles({
    workspace,
    snapshot,
    catalog,
    builds,
    isPlan: (path) => isUntouchedPlan(workspace, path),
  })
  const present = await findApp(work, parts.preparation)
  if (present !== null && own === null) {
    return { kind: 'app', what: present, why: 'It is not from an earlier build, and so it is yours.' }
  }
  if (present !== null && own !== null && own.touched !== null) {
    const why = `An earlier build began it from the template ${own.template}; since then ${own.touched}, so that it stays.`
    return { kind: 'app', what: present, why }
  }
  const choice = await choose(work, parts, present === null ? null : (own?.template ?? null))
  const scaffold = await planScaffold(workspace, catalog, choice.template.id, own)
  if (present !== null && own !== null && isComplete(own, choice, scaffold.copies.length)) {
    const why = `An earlier build began it from the template ${own.template}, which fits this goal too. ${choice.why}`
    return { kind: 'app', what: present, why }
  }
  log.append('plan', `Template ${choice.template.id}: ${choice.why}`)
  return { kind: 'template', choice, scaffold }
}

/** Whether all of the chosen template is there, from an earlier build. */
const isComplete = ({ files, template }: OwnFiles, choice: Choice, copies: number): boolean =>
  template === choice.template.id && [...files.values()].filter((of) => of === template).length >= copies

/** Describes the app in the workspace; null if there is none. */
async function findApp({ row, sandbox, workspace, log }: Work, preparation: Preparation) {
  try {
    const { kind } = await preparation.plan({ serverId: row.serverId, sandbox, workspace, folder: '', log })
    return kind
  } catch (error) {
    if (error instanceof NoAppFound) return null
    // Something is there and has a mistake, which the agent may mend.
    if (error instanceof AppError)
      return `one that cannot be started yet (${error.message.replace(/\.$/, '')})`
    throw error
  }
}

/** Has the agent choose a template where it can, else the words of the goal. @param present the one that is there */
async function choose(work: Work, { agent, catalog }: BeginParts, present: string | null): Promise<Choice> {
  const { row, log, signal } = work
  const templates = await usable(work, catalog)
  if (agent.plan === undefined) return chooseByWords(row.goal, templates, present)
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
    if (template) return { template, why: 'The agent chose it.', steps: plan.steps }
    throw new Error(`it chose ${JSON.stringify(plan.template)}, which is none of the templates.`)
  } catch (error) {
    signal.throwIfAborted()
    const reason = messageOf(error)
    log.append('plan', `The agent could not plan: ${reason} The words of the goal decide.`)
    const choice = chooseByWords(row.goal, templates, present)
    return { ...choice, why: `${choice.why} (The agent could not plan: ${reason})` }
  } finally {
    transcript.end()
  }
}

/** The templates whose programs this machine has. */
async function usable({ sandbox, log }: Work, catalog: TemplateCatalog): Promise<ProjectTemplate[]> {
  const tools = new SandboxTools(sandbox)
  const found: ProjectTemplate[] = []
  for (const template of catalog.list()) {
    const tool = NEEDED_TOOLS[template.id]
    if (tool === undefined || (await tools.has(tool))) found.push(template)
    else log.append('plan', `The template ${template.id} is left out: ${tool} is not installed.`)
  }
  if (found.length === 0) throw new BuildFailure('There is no template that this machine can run.')
  return found
}
