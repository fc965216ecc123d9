/** Characters of a goal in a title. */
const TITLE = 80

/** Returns the first line of a goal, shortened: what a task or a build is called. */
export function titleOf(goal: string): string {
  const [line = ''] = goal.trim().split('\n', 1)
  return line.length > TITLE ? `${line.slice(0, TITLE)}…` : line
}
