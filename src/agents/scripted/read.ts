import { parseDuration } from '../../runtime/duration.ts'
import type { JsonReader } from '../../runtime/validation/json-reader.ts'
import { Validator } from '../../runtime/validation/validate.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'
import { readMatcher } from './match.ts'
import { type ScenarioText, STEP_KINDS, type StepKind, StepText } from './model.ts'
import type { Scenario, Step } from './scenario.ts'
import { type KnownValues, parseCommand, parseTemplate, type Template } from './template.ts'

/** Longest wait, milliseconds: a year. */
const LONGEST_WAIT_MS = 366 * 86_400_000

/** A scenario, read and as it was written. */
export interface ReadScenario {
  readonly scenario: Scenario
  readonly text: ScenarioText
}

/**
 * Reads scenarios whose shape has been checked.
 *
 * @throws ValidationError for an expression, a value or an order of steps that cannot be, before anything is done with any
 */
export const readScenarios = (given: JsonReader): ReadScenario[] =>
  given.list().map((entry) => ({ scenario: readScenario(entry), text: entry.value as ScenarioText }))

/** Reads one scenario whose shape has been checked. @throws ValidationError */
export function readScenario(given: JsonReader): Scenario {
  const match = given.required('match')
  const matcher = readMatcher(match)
  const values: KnownValues = { names: new Set(['goal', ...matcher.names]), unknown: 'refused' }
  return {
    title: given.field('name')?.text() ?? titleOf(match),
    matcher,
    steps: inOrder(given.required('steps').list(), values),
  }
}

const stepValidator = new Validator(StepText)

/** Reads steps in their order: each may use the values that those before it name. @throws ValidationError */
export function readSteps(given: readonly JsonReader[], known: KnownValues): Step[] {
  for (const { value, path } of given) stepValidator.parse(value, path)
  return inOrder(given, known)
}

function inOrder(given: readonly JsonReader[], known: KnownValues): Step[] {
  const names = new Set(known.names)
  let end: string | undefined
  return given.map((entry) => {
    if (end !== undefined)
      throw new ValidationError(entry.path, `nothing comes to this step: "${end}" ends the work.`)
    const step = readStep(entry, { ...known, names })
    if ('as' in step && step.as !== null) names.add(step.as)
    if (step.does === 'complete' || step.does === 'fail') end = step.does
    return step
  })
}

function readStep(given: JsonReader, values: KnownValues): Step {
  const kind = STEP_KINDS.find((name) => given.field(name)) as StepKind
  return READERS[kind](given.required(kind), values)
}

/** How each kind of step is read from what stands behind its name. */
const READERS: Record<StepKind, (given: JsonReader, values: KnownValues) => Step> = {
  run: (given, values) => {
    const command = mainOf(given, 'command')
    const timeout = given.field('timeout')
    const expect = given.field('expect')
    return {
      does: 'run',
      command: told(command, () => parseCommand(command.text(), values)),
      cwd: given.field('cwd')?.text() ?? '',
      timeoutMs: timeout ? duration(timeout, 1) : null,
      expect: expect ? (expect.value as number | 'any') : 0,
      as: nameIn(given),
    }
  },
  write: (given, values) => {
    const content = given.required('content')
    const isVerbatim = given.field('verbatim')?.value === true
    return {
      does: 'write',
      path: template(given.required('path'), values),
      content: isVerbatim ? [content.text()] : template(content, values),
    }
  },
  read: (given, values) => ({
    does: 'read',
    path: template(mainOf(given, 'path'), values),
    as: nameIn(given),
  }),
  ask: (given, values) => ({
    does: 'ask',
    question: template(mainOf(given, 'question'), values),
    as: nameIn(given) ?? 'answer',
  }),
  say: (given, values) => ({ does: 'say', text: template(given, values) }),
  wait: (given) => ({ does: 'wait', ms: duration(given, 0) }),
  hold: () => ({ does: 'hold' }),
  complete: (given, values) => ({ does: 'complete', text: template(given, values) }),
  fail: (given, values) => ({ does: 'fail', text: template(given, values) }),
}

/** The main field of a step, which may be all that is written of it. */
const mainOf = (given: JsonReader, main: string): JsonReader => given.field(main) ?? given

const nameIn = (given: JsonReader): string | null => given.field('as')?.text() ?? null

const template = (given: JsonReader, values: KnownValues): Template =>
  told(given, () => parseTemplate(given.text(), values))

/** Tells where something stands that a reader without places refuses. */
function told<T>(given: JsonReader, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof ValidationError || !(error instanceof Error)) throw error
    throw new ValidationError(given.path, `${error.message}.`)
  }
}

/** A duration as a text, or a number of seconds. */
function duration(given: JsonReader, leastMs: number): number {
  const ms = parseDuration(given.text())
  if (ms !== null && ms >= leastMs && ms <= LONGEST_WAIT_MS) return ms
  throw given.error('a duration such as 500ms, 2s or 10m')
}

/** What a scenario without a name is called: the goals that it is for. */
const titleOf = ({ value }: JsonReader): string =>
  typeof value === 'string' ? value : String(Object.values(value as object)[0])
