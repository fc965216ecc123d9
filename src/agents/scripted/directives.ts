import { JsonReader } from '../../runtime/validation/json-reader.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'
import { AgentError } from '../agent.ts'
import { readSteps } from './read.ts'
import { oneLine } from './result.ts'
import type { Step } from './scenario.ts'

/** A line of a goal that says what to do. */
const DIRECTIVE = /^\s*(run|write|ask|wait|fail|complete):(?:\s+(.*))?$/s

interface Directive {
  name: string
  /** What stands behind the colon. */
  rest: string
  line: string
  /** Counts from 1. */
  number: number
}

/**
 * The steps that a goal itself asks for, one a line: `run: CMD`, `write: PATH <<< TEXT`, `ask: QUESTION`, `wait: 2s`,
 * `fail: REASON`, `complete: TEXT`. Other lines are for people; what comes after the end of the work is passed over.
 *
 * @throws AgentError that names the line that cannot be understood
 */
export function directivesIn(goal: string): Step[] {
  const found = goal.split(/\r?\n/).flatMap((line, index): Directive[] => {
    const [, name, rest = ''] = DIRECTIVE.exec(line) ?? []
    return name === undefined ? [] : [{ name, rest, line, number: index + 1 }]
  })
  const end = found.findIndex(({ name }) => name === 'complete' || name === 'fail')
  const directives = end === -1 ? found : found.slice(0, end + 1)
  const given = directives.map((one, index) => new JsonReader({ [one.name]: argumentOf(one) }, [index]))
  try {
    return readSteps(given, { names: new Set(), unknown: 'kept' })
  } catch (error) {
    const wrong = error instanceof ValidationError ? directives[Number(error.path[0])] : undefined
    throw wrong ? notUnderstood(wrong, (error as ValidationError).reason) : error
  }
}

/** What a step has behind its name. */
function argumentOf({ name, rest, ...where }: Directive): unknown {
  if (name !== 'write') return rest.trim()
  const at = rest.indexOf('<<<')
  if (at === -1) throw notUnderstood(where, 'expected a path, "<<<" and a text.')
  return { path: rest.slice(0, at).trimEnd(), content: rest.slice(at + '<<<'.length).replace(/^ /, '') }
}

const notUnderstood = ({ number, line }: Pick<Directive, 'number' | 'line'>, reason: string): AgentError =>
  new AgentError(`Line ${number} of the goal, ${JSON.stringify(oneLine(line))}: ${reason}`)
