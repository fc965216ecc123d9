import { RE2JS } from 're2js'
import { parseDuration } from '../../runtime/duration.ts'
import { compilePattern, PatternError } from '../../runtime/linear-pattern.ts'
import type { JsonReader } from '../../runtime/validation/json-reader.ts'
import { Validator } from '../../runtime/validation/validate.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'
import { type ScenarioText, STEP_KINDS, type StepKind, StepText } from './model.ts'
import type { GoalMatcher, Scenario, ScenarioStep } from './scenario.ts'
import { type KnownValues, parseCommand, parseTemplate, type Template } from './template.ts'

/** Longest wait, milliseconds: a year. */
const MAX_WAIT_MS = 366 * 86_400_000

/** A parsed scenario, and its source text. */
export interface ParsedScenario {
  readonly scenario: Scenario
  readonly text: ScenarioText
}

/**
 * Reads scenarios whose shape has been checked.
 *
 * @throws ValidationError for an invalid expression, value or order of steps
 */
export const readScenarios = (reader: JsonReader): ParsedScenario[] =>
  reader.list().map((entry) => ({ scenario: readScenario(entry), text: entry.value as ScenarioText }))

/** Reads one scenario whose shape has been checked. @throws ValidationError */
export function readScenario(reader: JsonReader): Scenario {
  const match = reader.required('match')
  const matcher = readMatcher(match)
  const values: KnownValues = { names: new Set(['goal', ...matcher.names]), unknown: 'refused' }
  return {
    title: reader.field('name')?.text() ?? defaultTitle(match),
    matcher,
    steps: readStepsInOrder(reader.required('steps').list(), values),
  }
}

const stepValidator = new Validator(StepText)

/** Reads steps in order. Each may use the values of earlier ones. @throws ValidationError */
export function readSteps(reader: readonly JsonReader[], known: KnownValues): ScenarioStep[] {
  for (const { value, path } of reader) stepValidator.parse(value, path)
  return readStepsInOrder(reader, known)
}

function readStepsInOrder(reader: readonly JsonReader[], known: KnownValues): ScenarioStep[] {
  const names = new Set(known.names)
  let end: string | undefined
  return reader.map((entry) => {
    if (end !== undefined)
      throw new ValidationError(entry.path, `nothing comes to this step: "${end}" ends the work.`)
    const step = readStep(entry, { ...known, names })
    if ('as' in step && step.as !== null) names.add(step.as)
    if (step.kind === 'complete' || step.kind === 'fail') end = step.kind
    return step
  })
}

function readStep(reader: JsonReader, values: KnownValues): ScenarioStep {
  const kind = STEP_KINDS.find((name) => reader.field(name)) as StepKind
  return READERS[kind](reader.required(kind), values)
}

/** Functions that read each kind of step from the value of its field. */
const READERS: Record<StepKind, (reader: JsonReader, values: KnownValues) => ScenarioStep> = {
  run: (reader, values) => {
    const command = mainField(reader, 'command')
    const timeout = reader.field('timeout')
    const expect = reader.field('expect')
    return {
      kind: 'run',
      command: withPath(command, () => parseCommand(command.text(), values)),
      cwd: reader.field('cwd')?.text() ?? '',
      timeoutMs: timeout ? readDuration(timeout, 1) : null,
      expect: expect ? (expect.value as number | 'any') : 0,
      as: resultName(reader),
    }
  },
  write: (reader, values) => {
    const content = reader.required('content')
    const isVerbatim = reader.field('verbatim')?.value === true
    return {
      kind: 'write',
      path: readTemplate(reader.required('path'), values),
      content: isVerbatim ? [content.text()] : readTemplate(content, values),
    }
  },
  read: (reader, values) => ({
    kind: 'read',
    path: readTemplate(mainField(reader, 'path'), values),
    as: resultName(reader),
  }),
  ask: (reader, values) => ({
    kind: 'ask',
    question: readTemplate(mainField(reader, 'question'), values),
    as: resultName(reader) ?? 'answer',
  }),
  say: (reader, values) => ({ kind: 'say', text: readTemplate(reader, values) }),
  wait: (reader) => ({ kind: 'wait', ms: readDuration(reader, 0) }),
  hold: () => ({ kind: 'hold' }),
  complete: (reader, values) => ({ kind: 'complete', text: readTemplate(reader, values) }),
  fail: (reader, values) => ({ kind: 'fail', text: readTemplate(reader, values) }),
}

/** Returns the main field of a step. In the short form, it is the step's whole value. */
const mainField = (reader: JsonReader, main: string): JsonReader => reader.field(main) ?? reader

const resultName = (reader: JsonReader): string | null => reader.field('as')?.text() ?? null

const readTemplate = (reader: JsonReader, values: KnownValues): Template =>
  withPath(reader, () => parseTemplate(reader.text(), values))

/** Adds the path to errors of a parser that does not know it. */
function withPath<T>(reader: JsonReader, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof ValidationError || !(error instanceof Error)) throw error
    throw new ValidationError(reader.path, `${error.message}.`)
  }
}

/** Reads a duration: a text such as `2s`, or a number of seconds. */
function readDuration(reader: JsonReader, minMs: number): number {
  const ms = parseDuration(reader.text())
  if (ms !== null && ms >= minMs && ms <= MAX_WAIT_MS) return ms
  throw reader.error('a duration such as 500ms, 2s or 10m')
}

/** Returns the title of a scenario without a name: its matcher. */
const defaultTitle = ({ value }: JsonReader): string =>
  typeof value === 'string' ? value : String(Object.values(value as object)[0])

/** Number of a goal's characters that expressions and globs are matched with. @bound peer */
const MAX_GOAL = 16_384

/** Most instructions of a compiled expression. With `MAX_GOAL`, it limits the time of a match. @bound peer */
const MAX_INSTRUCTIONS = 1_000

/** Names of berth's own values. */
const RESERVED_NAMES = ['goal']

/**
 * Reads a scenario's matcher: a text that equals the goal, `{glob}` or `{regex}`. Ignores white space around a goal.
 *
 * @throws ValidationError
 */
function readMatcher(reader: JsonReader): GoalMatcher {
  if (!reader.isObject) return { ...exactMatcher(reader.text().trim()), accountId: null }
  const accountId = reader.field('account_id')?.text() ?? null
  const [glob, regex] = [reader.field('glob'), reader.field('regex')]
  if (glob)
    return { ...regexMatcher(glob, `^(?:${globToRegex(glob.text().trim())})$`, RE2JS.DOTALL), accountId }
  if (regex) return { ...regexMatcher(regex, regex.text(), 0), accountId }
  return { names: [], match: () => NO_VALUES, accountId }
}

/** The part of a matcher that looks at goals. */
type GoalTest = Omit<GoalMatcher, 'accountId'>

const NO_VALUES: ReadonlyMap<string, string> = new Map()

const exactMatcher = (text: string): GoalTest => ({
  names: [],
  match: (goal) => (goal.trim() === text ? NO_VALUES : null),
})

/**
 * Returns a matcher for a regular expression, which may match anywhere in the goal. Callers choose the goal, so the
 * engine is RE2, whose time is linear in its length. It has neither backreferences nor lookaround.
 */
function regexMatcher(reader: JsonReader, source: string, flags: number): GoalTest {
  const pattern = compile(reader, source, flags)
  const names = Object.keys(pattern.namedGroups())
  const reserved = names.find((name) => RESERVED_NAMES.includes(name))
  if (reserved !== undefined)
    throw reader.error(`other names of groups than "${reserved}", which is a value of berth's own`)
  return {
    names,
    match(goal) {
      const matcher = pattern.matcher(goal.trim().slice(0, MAX_GOAL))
      if (!matcher.find()) return null
      return new Map(names.map((name) => [name, matcher.group(name) ?? '']))
    },
  }
}

function compile(reader: JsonReader, source: string, flags: number): RE2JS {
  try {
    return compilePattern(source, { flags, maxInstructions: MAX_INSTRUCTIONS })
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    throw new ValidationError(reader.path, error.message)
  }
}

/** Converts a glob to an expression: `*` is any text, `?` one character, `\` escapes the next one. */
const globToRegex = (glob: string): string =>
  glob.replace(/\\([\s\S])|[\s\S]/gu, (part, escaped?: string) => {
    if (part === '*') return '.*'
    if (part === '?') return '.'
    return RE2JS.quote(escaped ?? part)
  })
