import { describeExitCode } from '../../runtime/exit-code.ts'
import type { Outcome } from '../agent.ts'

/** Exit codes of a shell that could not run a command. */
const NOT_EXECUTABLE = 126
const NOT_FOUND = 127

const NOT_FOUND_REMEDY =
  "A command was not found (exit code 127). Servers see this machine's programs of /usr and of the folders of PATH outside homes: install the agent there, or on the server itself (docs/command-agent.md)."

/**
 * Returns the outcome for an agent that has exited by itself.
 *
 * @param last the end of its output
 */
export function outcomeOf(exitCode: number, last: string): Outcome {
  if (exitCode === 0) return { status: 'completed', result: last || 'The agent ended and printed nothing.' }
  return { status: 'failed', result: withOutput(`The agent failed: ${reasonOf(exitCode)}`, last) }
}

/** Joins a reason and the end of the output. */
export function withOutput(reason: string, last: string): string {
  return last === '' ? `${reason} It printed nothing.` : `${reason} Its last lines:\n${last}`
}

/** Returns a time for a person: `90 s`, `10 min`, `2 h`. */
export function timeText(ms: number): string {
  const units = [
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const
  const [unit, length] = units.find(([, length]) => ms >= length && ms % length === 0) ?? ['ms', 1]
  return `${ms / length} ${unit}`
}

function reasonOf(exitCode: number): string {
  if (exitCode === NOT_FOUND) return NOT_FOUND_REMEDY
  if (exitCode === NOT_EXECUTABLE) return 'A command cannot be executed (exit code 126).'
  return `It ${describeExitCode(exitCode)}.`
}
