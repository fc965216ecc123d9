import { type Fields, type Given, Mistake } from '../../contract/given.ts'
import { parseDuration } from '../../runtime/duration.ts'
import { readMatcher } from './match.ts'
import type { Scenario, ScenarioText, Step } from './scenario.ts'
import { type KnownValues, parseCommand, parseTemplate, type Template } from './template.ts'

/** Scenarios that are taken at once, and steps of each. */
const MOST_SCENARIOS = 1_000
const MOST_STEPS = 1_000

/** Longest wait, milliseconds: a year. */
const LONGEST_WAIT_MS = 366 * 86_400_000

/** The kinds of steps, as they are written. */
const KINDS = ['run', 'write', 'read', 'ask', 'say', 'wait', 'hold', 'complete', 'fail'] as const

/** A scenario, read and as it was written. */
export interface ReadScenario {
  readonly scenario: Scenario
  readonly text: ScenarioText
}

/** Reads a list of scenarios. @throws Mistake for whatever no scenario has, before anything is done with any */
export function readScenarios(given: Given): ReadScenario[] {
  const entries = given.list('a list of scenarios')
  if (entries.length > MOST_SCENARIOS) {
    throw new Mistake(given.place, `expected at most ${MOST_SCENARIOS} scenarios, got ${entries.length}.`)
  }
  return entries.map((entry) => ({ scenario: readScenario(entry), text: entry.value as ScenarioText }))
}

/** Reads one scenario: `{name?, match, steps}`. @throws Mistake */
export function readScenario(given: Given): Scenario {
  const fields = given.fields(['name', 'match', 'steps'])
  const name = fields.name?.filledText()
  const matcher = readMatcher(fields.match ?? given.missing('match', 'a text, {"glob": …} or {"regex": …}'))
  const steps = (fields.steps ?? given.missing('steps', 'a list of steps')).list('a list of steps')
  if (steps.length === 0 || steps.length > MOST_STEPS) {
    throw new Mistake([...given.place, 'steps'], `expected 1 to ${MOST_STEPS} steps, got ${steps.length}.`)
  }
  const values: KnownValues = { names: new Set(['goal', ...matcher.names]), unknown: 'refused' }
  return { title: name ?? titleOf(fields.match), matcher, steps: readSteps(steps, values) }
}

/** Reads steps in their order: each may use the values that those before it name. @throws Mistake */
export function readSteps(given: readonly Given[], known: KnownValues): Step[] {
  const names = new Set(known.names)
  let end: string | undefined
  return given.map((entry) => {
    if (end !== undefined)
      throw new Mistake(entry.place, `nothing comes to this step: "${end}" ends the work.`)
    const step = readStep(entry, { ...known, names })
    if ('as' in step && step.as !== null) names.add(step.as)
    if (step.does === 'complete' || step.does === 'fail') end = step.does
    return step
  })
}

function readStep(given: Given, values: KnownValues): Step {
  const expected = `an object with one of ${KINDS.join(', ')}`
  const fields = given.fields(KINDS, expected)
  const [kind, second] = KINDS.filter((name) => fields[name])
  if (kind === undefined) throw given.mistake(expected)
  if (second !== undefined) {
    throw new Mistake(given.place, `expected one of ${kind} and ${second}: each is a step of its own.`)
  }
  return READERS[kind](fields[kind] as Given, values)
}

/** How each kind of step is read from what stands behind its name. */
const READERS: Record<(typeof KINDS)[number], (given: Given, values: KnownValues) => Step> = {
  run: (given, values) => {
    const options = longForm(given, 'command', ['cwd', 'timeout', 'expect', 'as'])
    const { command, cwd, timeout, expect, as } = options
    return {
      does: 'run',
      command: told(command, () => parseCommand(command.filledText('a command'), values)),
      cwd: cwd?.text() ?? '',
      timeoutMs: timeout ? duration(timeout, 1) : null,
      expect: expect ? expectation(expect) : 0,
      as: as ? valueName(as) : null,
    }
  },
  write: (given, values) => {
    const { path, content, verbatim } = given.fields(
      ['path', 'content', 'verbatim'],
      'an object with path and content',
    )
    const text = content ?? given.missing('content')
    const asItIs = verbatim !== undefined && boolean(verbatim)
    return {
      does: 'write',
      path: template(path ?? given.missing('path'), values),
      content: asItIs ? [text.text()] : template(text, values, { mayBeEmpty: true }),
    }
  },
  read: (given, values) => {
    const { path, as } = longForm(given, 'path', ['as'])
    return { does: 'read', path: template(path, values), as: as ? valueName(as) : null }
  },
  ask: (given, values) => {
    const { question, as } = longForm(given, 'question', ['as'])
    return { does: 'ask', question: template(question, values), as: as ? valueName(as) : 'answer' }
  },
  say: (given, values) => ({ does: 'say', text: template(given, values) }),
  wait: (given) => ({ does: 'wait', ms: duration(given, 0) }),
  hold: (given) => {
    if (given.value === true) return { does: 'hold' }
    throw given.mistake('true')
  },
  complete: (given, values) => ({ does: 'complete', text: template(given, values) }),
  fail: (given, values) => ({ does: 'fail', text: template(given, values) }),
}

/** The fields of a step that may also be written as its main field alone. */
function longForm<Main extends string, Rest extends string>(
  given: Given,
  main: Main,
  rest: readonly Rest[],
): Fields<Rest> & Record<Main, Given> {
  if (!given.isObject) {
    given.text(`a text, or an object with ${main}`)
    return { [main]: given } as Fields<Rest> & Record<Main, Given>
  }
  const fields = given.fields([main, ...rest])
  if (!fields[main]) given.missing(main)
  return fields as Fields<Rest> & Record<Main, Given>
}

function template(given: Given, values: KnownValues, { mayBeEmpty = false } = {}): Template {
  const text = mayBeEmpty ? given.text() : given.filledText()
  return told(given, () => parseTemplate(text, values))
}

/** Tells where something stands that a reader without places refuses. */
function told<T>(given: Given, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof Mistake || !(error instanceof Error)) throw error
    throw new Mistake(given.place, `${error.message}.`)
  }
}

/** A duration as a text, or a number of seconds. */
function duration(given: Given, leastMs: number): number {
  const { value } = given
  const ms = typeof value === 'string' || typeof value === 'number' ? parseDuration(String(value)) : null
  if (ms !== null && ms >= leastMs && ms <= LONGEST_WAIT_MS) return ms
  throw given.mistake('a duration such as 500ms, 2s or 10m')
}

function expectation(given: Given): number | 'any' {
  const { value } = given
  if (value === 'any') return value
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 255) return value as number
  throw given.mistake('an exit code from 0 to 255, or "any"')
}

function boolean(given: Given): boolean {
  if (typeof given.value === 'boolean') return given.value
  throw given.mistake('true or false')
}

function valueName(given: Given): string {
  const name = given.text('a name')
  if (/^[A-Za-z_]\w*$/.test(name) && name !== 'goal') return name
  throw given.mistake('a name of letters, digits and "_" that is not "goal"')
}

/** What a scenario without a name is called: the goals that it is for. */
function titleOf(match: Given | undefined): string {
  const { value } = match ?? {}
  const text = typeof value === 'string' ? value : Object.values(value as object)[0]
  return String(text)
}
