import { JsonReader } from '../../runtime/validation/json-reader.ts'
import { nearest } from '../../runtime/validation/nearest.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'
import { AgentError } from '../agent.ts'
import { readSteps } from './read.ts'
import { firstLine } from './result.ts'
import type { ScenarioStep } from './scenario.ts'

/** The names of directives. */
const NAMES = ['run', 'write', 'ask', 'wait', 'complete', 'fail']

/** Matches a line of a goal that is a directive. */
const DIRECTIVE = new RegExp(`^\\s*(${NAMES.join('|')}):(?:\\s+(.*))?$`, 's')

/** Matches a line that looks like a directive, whatever its name: a word in lower case, a colon and a text. */
const LOOKS_LIKE_ONE = /^\s*([a-z]+):\s+\S/

interface Directive {
  name: string
  /** The text after the colon. */
  text: string
  line: string
  /** Counts from 1. */
  number: number
}

/**
 * Returns the steps of a goal's directives, one per line: `run: CMD`, `write: PATH <<< TEXT`, `ask: QUESTION`,
 * `wait: 2s`, `fail: REASON`, `complete: TEXT`. Ignores other lines, and all lines after `fail` or `complete`. In a goal
 * with a directive, an earlier line that looks like one but has an unknown name is a mistake; prose may have such lines.
 *
 * @throws AgentError that names the invalid line
 */
export function parseDirectives(goal: string): ScenarioStep[] {
  const lines = goal.split(/\r?\n/)
  const found = lines.flatMap((line, index): Directive[] => {
    const [, name, text = ''] = DIRECTIVE.exec(line) ?? []
    return name === undefined ? [] : [{ name, text, line, number: index + 1 }]
  })
  if (found.length === 0) return []
  const end = found.findIndex(({ name }) => name === 'complete' || name === 'fail')
  const directives = end === -1 ? found : found.slice(0, end + 1)
  refuseUnknown(lines.slice(0, found[end]?.number))
  const given = directives.map((one, index) => new JsonReader({ [one.name]: parseArgument(one) }, [index]))
  try {
    return readSteps(given, { names: new Set(), unknown: 'kept' })
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    const wrong = directives[Number(error.path[0])]
    throw wrong ? directiveError(wrong, error.reason) : error
  }
}

/**
 * Checks lines for directives with an unknown name.
 *
 * @throws AgentError that names the first such line
 */
function refuseUnknown(lines: readonly string[]): void {
  for (const [index, line] of lines.entries()) {
    const [, name] = LOOKS_LIKE_ONE.exec(line) ?? []
    if (name === undefined || NAMES.includes(name)) continue
    const [near] = nearest(name, NAMES)
    const hint = near === undefined ? '' : ` Did you mean "${near}:"?`
    const reason = `no directive is called "${name}:".${hint} There are ${NAMES.join(', ')}.`
    throw directiveError({ number: index + 1, line }, reason)
  }
}

/** Returns the value of a directive's step. */
function parseArgument({ name, text, ...where }: Directive): unknown {
  if (name !== 'write') return text.trim()
  const at = text.indexOf('<<<')
  if (at === -1) throw directiveError(where, 'expected a path, "<<<" and a text.')
  return { path: text.slice(0, at).trimEnd(), content: text.slice(at + '<<<'.length).replace(/^ /, '') }
}

const directiveError = ({ number, line }: Pick<Directive, 'number' | 'line'>, reason: string): AgentError =>
  new AgentError(`Line ${number} of the goal, ${JSON.stringify(firstLine(line))}: ${reason}`)
