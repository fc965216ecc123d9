import type { Template } from './template.ts'

/** Most characters of a command or question in a sentence. @bound reader */
const MAX_LINE = 120

/** Most lines and characters of a command's output in a result. @bound reader */
const MAX_OUTPUT_LINES = 20
const MAX_OUTPUT_CHARACTERS = 2_000

/** Most steps in a result. @bound reader */
const MAX_LISTED = 20

/** Most characters of the goal in a result. @bound reader */
const MAX_GOAL = 4_000

/** Returns the beginning of a text, on one line. */
export function firstLine(text: string): string {
  const [first = '', ...more] = text.trim().split(/\r?\n/)
  const isCut = more.length > 0 || first.length > MAX_LINE
  return isCut ? `${first.slice(0, MAX_LINE).trimEnd()} …` : first
}

/** Returns the beginning of a command with its values, on one line. */
export const describeCommand = (template: Template, values: ReadonlyMap<string, string>): string =>
  firstLine(
    template
      // A value may be very long.
      .map((piece) =>
        typeof piece === 'string' ? piece : (values.get(piece.value) ?? '').slice(0, 2 * MAX_LINE),
      )
      .join(''),
  )

/** Returns the end of a command's output as the end of a sentence: after a colon, or only a full stop. */
export function describeOutput(output: string): string {
  const lines = output.trimEnd().split('\n')
  const end = lines.slice(-MAX_OUTPUT_LINES).join('\n').slice(-MAX_OUTPUT_CHARACTERS)
  return end === '' ? '.' : `:\n${end}`
}

/** Returns the result of work that no step ended: what was done. */
export function describeDone(done: readonly string[]): string {
  const listed = done.slice(0, MAX_LISTED)
  const more = done.length - listed.length
  return `Done: ${listed.join('; ')}${more > 0 ? `; and ${more} more` : ''}.`
}

/** Returns the result of a goal without any instructions. */
export function describeIdle(goal: string): string {
  const repeated = goal.length > MAX_GOAL ? `${goal.slice(0, MAX_GOAL)} …` : goal
  return [
    'Nothing was done: no agent is configured but the scripted one, and nothing tells it what to do here. The goal was:',
    '',
    repeated,
    '',
    'Start berth with --agent openai, anthropic or command for one that works on any goal. Or tell the scripted one what to do: by scenarios, or by lines such as "run: npm test" or "ask: Which one?" in the goal.',
  ].join('\n')
}
