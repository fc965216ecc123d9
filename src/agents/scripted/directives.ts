import { JsonReader } from '../../runtime/validation/json-reader.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'
import { AgentError } from '../agent.ts'
import { readSteps } from './read.ts'
import { firstLine } from './result.ts'
import type { Step } from './scenario.ts'

/** Matches a line of a goal that is a directive. */
const DIRECTIVE = /^\s*(run|write|ask|wait|fail|complete):(?:\s+(.*))?$/s

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
 * `wait: 2s`, `fail: REASON`, `complete: TEXT`. Ignores other lines, and all lines after `fail` or `complete`.
 *
 * @throws AgentError that names the invalid line
 */
export function parseDirectives(goal: string): Step[] {
  const found = goal.split(/\r?\n/).flatMap((line, index): Directive[] => {
    const [, name, text = ''] = DIRECTIVE.exec(line) ?? []
    return name === undefined ? [] : [{ name, text, line, number: index + 1 }]
  })
  const end = found.findIndex(({ name }) => name === 'complete' || name === 'fail')
  const directives = end === -1 ? found : found.slice(0, end + 1)
  const given = directives.map((one, index) => new JsonReader({ [one.name]: parseArgument(one) }, [index]))
  try {
    return readSteps(given, { names: new Set(), unknown: 'kept' })
  } catch (error) {
    const wrong = error instanceof ValidationError ? directives[Number(error.path[0])] : undefined
    throw wrong ? directiveError(wrong, (error as ValidationError).reason) : error
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
