/** Characters of a command or question in a sentence. */
const LONGEST_MENTION = 120

/** Lines and characters of a command's output in a result. */
const LINES = 20
const CHARACTERS = 2_000

/** Steps that a result lists. */
const MOST_LISTED = 20

/** Characters of a goal that a result repeats. */
const LONGEST_GOAL = 4_000

/** Returns the beginning of a text, on one line. */
export function oneLine(text: string): string {
  const [first = '', ...more] = text.trim().split(/\r?\n/)
  const isCut = more.length > 0 || first.length > LONGEST_MENTION
  return isCut ? `${first.slice(0, LONGEST_MENTION).trimEnd()} …` : first
}

/** Returns the end of a command's output as the end of a sentence: after a colon, or only a full stop. */
export function endOf(output: string): string {
  const lines = output.trimEnd().split('\n')
  const end = lines.slice(-LINES).join('\n').slice(-CHARACTERS)
  return end === '' ? '.' : `:\n${end}`
}

/** Returns the result of work that no step ended: what was done. */
export function describeDone(done: readonly string[]): string {
  const listed = done.slice(0, MOST_LISTED)
  const more = done.length - listed.length
  return `Done: ${listed.join('; ')}${more > 0 ? `; and ${more} more` : ''}.`
}

/** Returns the result of a goal without any instructions. */
export function describeIdle(goal: string): string {
  const repeated = goal.length > LONGEST_GOAL ? `${goal.slice(0, LONGEST_GOAL)} …` : goal
  return [
    'Nothing was done, since no agent is configured. The goal was:',
    '',
    repeated,
    '',
    'Start berth with --agent openai, anthropic or command for one that works on any goal, or tell the scripted one what to do: by scenarios, or by lines such as "run: npm test" in the goal.',
  ].join('\n')
}
