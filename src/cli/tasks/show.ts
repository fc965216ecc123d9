import type { Task } from '../../resources/tasks/model.ts'
import { facts, paint, type Style, shorten } from '../output.ts'
import { toPlainText } from '../plain-text.ts'
import type { OutputStream } from '../process-context.ts'
import type { Column } from '../table.ts'

/** Characters of a goal that a list shows. */
const SHOWN_GOAL = 60

const STYLES: Partial<Record<Task['status'], Style>> = {
  running: 'cyan',
  awaiting_input: 'yellow',
  completed: 'green',
  failed: 'red',
}

/** The columns of a list of tasks. */
export const TASK_COLUMNS: Column<Task>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'STATUS', cell: ({ status }) => status, style: ({ status }) => STYLES[status] ?? 'dim' },
  { heading: 'SERVER', cell: ({ serverId }) => serverId, minor: 2 },
  { heading: 'CREATED', cell: ({ createdAt }) => createdAt, minor: 1 },
  { heading: 'GOAL', cell: ({ goal }) => goalSummary(goal), elastic: true },
]

/** Returns the beginning of a goal, on one line. */
export const goalSummary = (goal: string): string =>
  shorten(toPlainText(goal).trim().replace(/\s+/g, ' '), SHOWN_GOAL)

/** Returns a task in full. */
export function taskText(
  out: OutputStream,
  { id, serverId, status, createdAt, goal, question, result }: Task,
): string {
  const head = facts(out, [
    ['ID', id],
    ['Server', serverId],
    ['Status', status],
    ['Created', createdAt],
  ])
  const block = (label: string, text: string | undefined): string =>
    text === undefined
      ? ''
      : `${paint(out, 'dim', label)}\n${toPlainText(text).trimEnd().split('\n').map(indented).join('')}`
  return head + block('Goal', goal) + block('Question', question) + block('Result', result)
}

const indented = (line: string): string => `${`  ${line}`.trimEnd()}\n`

/** Returns the command that answers a task. */
export const answerHint = ({ id }: Pick<Task, 'id'>): string =>
  `The task waits for an answer. Give it with: berth tasks answer ${id} TEXT\n`

/** Returns the commands for a task that continues. */
export const nextStepsText = ({ id }: Pick<Task, 'id'>): string =>
  `  Look at it:  berth tasks events ${id} -f\n  Call it off: berth tasks cancel ${id}\n`
