import type { AppPlan } from '../../../hosting/app.ts'
import type { ScaffoldPlan } from '../files/scaffold.ts'
import type { Changes } from '../files/snapshot.ts'
import type { StepKey } from '../steps.ts'
import type { TemplateChoice } from './choose.ts'

/** Most characters of the goal in a plan. @bound reader */
const MAX_GOAL_SHOWN = 2_000

/** Most paths in a list. @bound reader */
const MAX_PATHS_SHOWN = 40

/** What a build starts from: a template or the app in the workspace. */
export type StartingPoint =
  /** A template is copied. */
  | { readonly kind: 'template'; readonly choice: TemplateChoice; readonly scaffold: ScaffoldPlan }
  /** The build continues with the app in the workspace. */
  | {
      readonly kind: 'app'
      /** What kind of app it is, or what is wrong with it, for the user. */
      readonly description: string
      /** Why no template is copied, as a sentence. */
      readonly reason: string
    }

/** The result of the work on the goal. */
interface Implementation {
  /** Whether the agent did nothing. */
  readonly idle: boolean
  /** The agent's summary. */
  readonly result: string
  readonly changes: Changes
}

/** The content of a plan. Unknown parts are left out. */
export interface PlanContent {
  readonly goal: string
  readonly startingPoint: StartingPoint
  readonly implementation?: Implementation
  /** How the app is installed, built and started. */
  readonly app?: AppPlan
  readonly failure?: { readonly key: StepKey; readonly reason: string }
}

/** Formats a plan as Markdown. */
export const planText = (content: PlanContent): string =>
  [
    '# Plan',
    quote(content.goal),
    '## What it begins with',
    startingPointText(content.startingPoint),
    '## What each phase does',
    phasesText(content),
    ...stepsText(content.startingPoint),
    ...outcomeSections(content),
  ].join('\n\n')

/** Formats the outcome so far as Markdown; empty if there is none. */
export const outcomeText = (content: PlanContent): string => outcomeSections(content).join('\n\n')

/** Joins paths by commas. It names the first 40 and counts the rest. */
export function pathsText(paths: readonly string[]): string {
  const shown = paths.slice(0, MAX_PATHS_SHOWN).join(', ')
  return paths.length > MAX_PATHS_SHOWN ? `${shown} and ${paths.length - MAX_PATHS_SHOWN} more` : shown
}

/** Formats changes as one line for each kind of change; none for no changes. */
export const changeLines = ({ created, changed, removed }: Changes): string[] =>
  [
    { what: 'Made', paths: created },
    { what: 'Changed', paths: changed },
    { what: 'Removed', paths: removed },
  ].flatMap(({ what, paths }) => (paths.length > 0 ? [`${what}: ${pathsText(paths)}.`] : []))

function quote(goal: string): string {
  const shown = goal.length > MAX_GOAL_SHOWN ? `${goal.slice(0, MAX_GOAL_SHOWN)}… (shortened)` : goal
  return shown
    .split('\n')
    .map((line) => `> ${line}`.trimEnd())
    .join('\n')
}

function startingPointText(startingPoint: StartingPoint): string {
  if (startingPoint.kind === 'app')
    return `The app that is there already: ${startingPoint.description}. ${startingPoint.reason}`
  const { id, label, description } = startingPoint.choice.template
  return `The template **${id}**. ${label}: ${description}\n\nWhy this one: ${startingPoint.choice.reason}`
}

function phasesText({ startingPoint, app }: PlanContent): string {
  const phases = [
    ['Plan', 'writes this file.'],
    ['Scaffold', scaffoldText(startingPoint)],
    ['Implement', 'has the configured agent work on the goal.'],
    ['Install', commandText('installs the packages that the app asks for, if any.', app?.install)],
    ['Build', commandText('runs the build command of the app, if it has one.', app?.build)],
    ['Deploy', startText(app)],
  ]
  return phases.map(([name, text], n) => `${n + 1}. **${name}** ${text}`).join('\n')
}

function scaffoldText(startingPoint: StartingPoint): string {
  if (startingPoint.kind === 'app') return 'copies nothing: the app is there.'
  const { copies, kept, removals } = startingPoint.scaffold
  const removed = removals.map(({ path }) => path)
  const from = [...new Set(removals.map(({ template }) => template))].join(', ')
  return [
    `copies ${copies.length === 0 ? 'nothing' : code(copies.map(({ path }) => path))}.`,
    ...(removed.length > 0
      ? [`It removes what an earlier build copied from ${from} and nobody has changed: ${code(removed)}.`]
      : []),
    ...(kept.length > 0 ? [`These are there already and stay as they are: ${code(kept)}.`] : []),
  ].join(' ')
}

const commandText = (unknown: string, command: string | null | undefined): string =>
  command === undefined ? unknown : command === null ? 'has nothing to do.' : `runs \`${command}\`.`

function startText(app: AppPlan | undefined): string {
  if (app === undefined) return 'starts the app, waits until it answers, and gives it a URL.'
  const { start, health } = app
  if (start.kind === 'command')
    return `runs \`${start.command}\`, waits until it answers at \`${health}\`, and gives it a URL.`
  if (start.kind === 'workers') return 'starts the workers.'
  return `gives the files of ${start.folder === '' ? 'the workspace' : code([start.folder])} a URL.`
}

function stepsText(startingPoint: StartingPoint): string[] {
  const steps = startingPoint.kind === 'template' ? startingPoint.choice.steps : null
  return steps === null ? [] : ["## The agent's plan", steps.trim()]
}

function outcomeSections({ implementation, failure }: PlanContent): string[] {
  return [
    ...(implementation === undefined ? [] : ['## What was implemented', implementedText(implementation)]),
    ...(failure === undefined
      ? []
      : ['## How it ended', `It failed in the phase ${failure.key}: ${failure.reason}`]),
  ]
}

function implementedText({ idle, result, changes }: Implementation): string {
  const message = result.trim()
  if (idle) {
    const quotation = message === '' ? '' : `\n\n${quote(message)}`
    return `Nothing was implemented: the app is what it began with. The agent says why:${quotation}`
  }
  const lines = changeLines(changes)
  return [
    ...(message === '' ? [] : [quote(message)]),
    lines.length === 0 ? 'No file was changed.' : lines.map((line) => `- ${line}`).join('\n'),
  ].join('\n\n')
}

const code = (paths: readonly string[]): string => {
  const shown = paths.slice(0, MAX_PATHS_SHOWN).map((path) => `\`${path}\``)
  return (
    shown.join(', ') + (paths.length > MAX_PATHS_SHOWN ? ` and ${paths.length - MAX_PATHS_SHOWN} more` : '')
  )
}
