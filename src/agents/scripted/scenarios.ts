/** Scenarios of the scripted agent for those who take, store and show them. Reading them loads what a start does without. */
import type { JsonReader } from '../../runtime/validation/json-reader.ts'
import { AgentError } from '../agent.ts'
import { parseDirectives } from './directives.ts'
import type { ScenarioStep } from './scenario.ts'
import type { ScenarioStore } from './store.ts'
import { fillCommand, fillTemplate } from './template.ts'

export {
  SCENARIO_FIELDS,
  ScenarioText,
  ScenarioTexts,
  type StepKind,
  StepKindName,
  StepText,
} from './model.ts'
export { readScenarios } from './read.ts'
export { firstLine } from './result.ts'

/** A step as the agent would take it. */
export interface PlannedStep {
  readonly kind: ScenarioStep['kind']
  /** The command, content, question, message or result with its values; empty if the kind has none. */
  readonly text: string
  /** Of `write` and `read`. */
  readonly path?: string
  /** The name that its result gets for later steps. */
  readonly as?: string
}

/** What the scripted agent would do about a goal. */
export interface Preview {
  readonly by: 'scenario' | 'directives' | 'nothing'
  /** The scenario: its position among all, its name or matcher, and its source. */
  readonly scenario: { readonly index: number; readonly name: string; readonly source: string } | null
  /** The values that the goal gives it. */
  readonly values: Readonly<Record<string, string>>
  readonly steps: readonly PlannedStep[]
  /** Why the agent would fail before the first step; null if it would not. */
  readonly problem: string | null
}

/**
 * Returns what the scripted agent would do about a goal, without doing it. What only a run tells, such as an answer, stays
 * `{{name}}`.
 *
 * @param accountId the account whose goal it would be; null for none
 * @param given scenarios to try in place of those that the control API has set
 * @throws ValidationError for a mistake in the given ones
 */
export async function previewGoal(
  goal: string,
  store: ScenarioStore,
  accountId: string | null = null,
  given: JsonReader | null = null,
): Promise<Preview> {
  const found = await store.find(goal, accountId, given)
  if (found) {
    const { scenario, values, index, source } = found
    const own = Object.fromEntries([...values].filter(([name]) => name !== 'goal'))
    return {
      by: 'scenario',
      scenario: { index, name: scenario.title, source },
      values: own,
      steps: planSteps(scenario.steps, values),
      problem: null,
    }
  }
  const none = { scenario: null, values: {}, steps: [], problem: null }
  try {
    const steps = planSteps(parseDirectives(goal), new Map())
    return { ...none, by: steps.length > 0 ? 'directives' : 'nothing', steps }
  } catch (error) {
    if (!(error instanceof AgentError)) throw error
    return { ...none, by: 'directives', problem: error.message }
  }
}

function planSteps(steps: readonly ScenarioStep[], given: ReadonlyMap<string, string>): PlannedStep[] {
  const later = steps.flatMap((step) => ('as' in step && step.as !== null ? [step.as] : []))
  const values = new Map([...later.map((name) => [name, `{{${name}}}`] as const), ...given])
  return steps.map((step) => planStep(step, values))
}

function planStep(step: ScenarioStep, values: ReadonlyMap<string, string>): PlannedStep {
  const { kind } = step
  const as = 'as' in step && step.as !== null ? { as: step.as } : {}
  switch (step.kind) {
    case 'run':
      return { kind, text: fillCommand(step.command, values), ...as }
    case 'write':
      return { kind, text: fillTemplate(step.content, values), path: fillTemplate(step.path, values) }
    case 'read':
      return { kind, text: '', path: fillTemplate(step.path, values), ...as }
    case 'ask':
      return { kind, text: fillTemplate(step.question, values), ...as }
    case 'wait':
      return { kind, text: `${step.ms / 1_000} s` }
    case 'hold':
      return { kind, text: '' }
    default:
      return { kind, text: fillTemplate(step.text, values) }
  }
}
