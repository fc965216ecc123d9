/** Characters of a goal in a title. */
const TITLE = 80

/** Characters of a reason in a list. */
const REASON = 300

/** Returns the first line of a goal, shortened: what a task or a build is called. */
export function titleOf(goal: string): string {
  const [line = ''] = goal.trim().split('\n', 1)
  return line.length > TITLE ? `${line.slice(0, TITLE)}…` : line
}

/** Returns the first line of why a task failed; null if it did not, or is a build, whose log says it. */
export function reasonOf({ status, result = '' }: { status: string; result?: string }): string | null {
  const [line = ''] = result.trim().split('\n', 1)
  return status === 'failed' && line !== '' ? line.slice(0, REASON) : null
}
