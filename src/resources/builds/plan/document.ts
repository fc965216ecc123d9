import type { AppPlan } from '../../../hosting/app-runtime/plan.ts'
import type { Scaffold } from '../files/scaffold.ts'
import type { Changes } from '../files/snapshot.ts'
import type { StepKey } from '../steps.ts'
import type { Choice } from './choose.ts'

/** Characters of a goal that a plan repeats. */
const SHOWN_GOAL = 2_000

/** Paths that a list names one by one. */
const SHOWN_PATHS = 40

/** What a build starts from: a template or the app in the workspace. */
export type Beginning =
  /** A template is copied. */
  | { readonly kind: 'template'; readonly choice: Choice; readonly scaffold: Scaffold }
  /** It goes on with the app that is there. */
  | {
      readonly kind: 'app'
      /** What it is, or what is wrong with it; for a person. */
      readonly what: string
      /** Why no template is copied: a sentence. */
      readonly why: string
    }

/** What came of the work on the goal. */
export interface Implementation {
  /** Whether anything was done. */
  readonly idle: boolean
  /** What the agent says of it. */
  readonly result: string
  readonly changes: Changes
}

/** All that a plan tells; what is not known yet is left out. */
export interface PlanFacts {
  readonly goal: string
  readonly beginning: Beginning
  readonly implementation?: Implementation
  /** How the app is installed, built and started. */
  readonly app?: AppPlan
  readonly failure?: { readonly key: StepKey; readonly reason: string }
}

/** The plan as Markdown. */
export const planText = (facts: PlanFacts): string =>
  [
    '# Plan',
    quote(facts.goal),
    '## What it begins with',
    beginningText(facts.beginning),
    '## What each phase does',
    phasesText(facts),
    ...stepsText(facts.beginning),
    ...newsOf(facts),
  ].join('\n\n')

/** What has come of it so far, as Markdown; empty for nothing. */
export const newsText = (facts: PlanFacts): string => newsOf(facts).join('\n\n')

/** Joins paths by commas. It names the first 40 and counts the rest. */
export function pathsText(paths: readonly string[]): string {
  const shown = paths.slice(0, SHOWN_PATHS).join(', ')
  return paths.length > SHOWN_PATHS ? `${shown} and ${paths.length - SHOWN_PATHS} more` : shown
}

/** What was changed, one line for each kind of change; none for nothing. */
export const changeLines = ({ made, changed, removed }: Changes): string[] =>
  [
    { what: 'Made', paths: made },
    { what: 'Changed', paths: changed },
    { what: 'Removed', paths: removed },
  ].flatMap(({ what, paths }) => (paths.length > 0 ? [`${what}: ${pathsText(paths)}.`] : []))

function quote(goal: string): string {
  const shown = goal.length > SHOWN_GOAL ? `${goal.slice(0, SHOWN_GOAL)}… (shortened)` : goal
  return shown
    .split('\n')
    .map((line) => `> ${line}`.trimEnd())
    .join('\n')
}

function beginningText(beginning: Beginning): string {
  if (beginning.kind === 'app') return `The app that is there already: ${beginning.what}. ${beginning.why}`
  const { id, label, description } = beginning.choice.template
  return `The template **${id}**. ${label}: ${description}\n\nWhy this one: ${beginning.choice.why}`
}

function phasesText({ beginning, app }: PlanFacts): string {
  const phases = [
    ['Plan', 'writes this file.'],
    ['Scaffold', scaffoldText(beginning)],
    ['Implement', 'has the configured agent work on the goal.'],
    ['Install', commandText('installs the packages that the app asks for, if any.', app?.install)],
    ['Build', commandText('runs the build command of the app, if it has one.', app?.build)],
    ['Deploy', startText(app)],
  ]
  return phases.map(([name, text], n) => `${n + 1}. **${name}** ${text}`).join('\n')
}

function scaffoldText(beginning: Beginning): string {
  if (beginning.kind === 'app') return 'copies nothing: the app is there.'
  const { copies, stays, removes } = beginning.scaffold
  const removed = removes.map(({ path }) => path)
  const from = [...new Set(removes.map(({ template }) => template))].join(', ')
  return [
    `copies ${copies.length === 0 ? 'nothing' : code(copies.map(({ path }) => path))}.`,
    ...(removed.length > 0
      ? [`It removes what an earlier build copied from ${from} and nobody has changed: ${code(removed)}.`]
      : []),
    ...(stays.length > 0 ? [`These are there already and stay as they are: ${code(stays)}.`] : []),
  ].join(' ')
}

const commandText = (unknown: string, command: string | null | undefined): string =>
  command === undefined ? unknown : command === null ? 'has nothing to do.' : `runs \`${command}\`.`

function startText(app: AppPlan | undefined): string {
  if (app === undefined) return 'starts the app, waits until it answers, and gives it a URL.'
  const { start, health } = app
  if (start.kind === 'command')
    return `runs \`${start.command}\`, waits until it answers at \`${health}\`, and gives it a URL.`
  return `gives the files of ${start.folder === '' ? 'the workspace' : code([start.folder])} a URL.`
}

function stepsText(beginning: Beginning): string[] {
  const steps = beginning.kind === 'template' ? beginning.choice.steps : null
  return steps === null ? [] : ["## The agent's plan", steps.trim()]
}

function newsOf({ implementation, failure }: PlanFacts): string[] {
  return [
    ...(implementation === undefined ? [] : ['## What was implemented', implementedText(implementation)]),
    ...(failure === undefined
      ? []
      : ['## How it ended', `It failed in the phase ${failure.key}: ${failure.reason}`]),
  ]
}

function implementedText({ idle, result, changes }: Implementation): string {
  const said = result.trim()
  if (idle) {
    const beneath = said === '' ? '' : `\n\n${quote(said)}`
    return `Nothing was implemented: the app is what it began with. The agent says why:${beneath}`
  }
  const lines = changeLines(changes)
  return [
    ...(said === '' ? [] : [quote(said)]),
    lines.length === 0 ? 'No file was changed.' : lines.map((line) => `- ${line}`).join('\n'),
  ].join('\n\n')
}

const code = (paths: readonly string[]): string => {
  const shown = paths.slice(0, SHOWN_PATHS).map((path) => `\`${path}\``)
  return shown.join(', ') + (paths.length > SHOWN_PATHS ? ` and ${paths.length - SHOWN_PATHS} more` : '')
}
