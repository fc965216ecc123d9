import type { Client } from '../client.ts'
import { untilInterrupted } from '../interrupt.ts'
import { printResult } from '../output.ts'
import { plain } from '../plain-text.ts'
import type { Session } from '../session.ts'
import { getTask } from './find.ts'
import { followTask, type Settled } from './follow.ts'
import { canAsk } from './prompt.ts'
import { howToAnswer, howToGoOn } from './show.ts'
import type { TaskPlace } from './transcript.ts'
import { TranscriptView } from './view.ts'

/** The exit code by what became of a task. */
const EXIT_CODES = { completed: 0, failed: 1, awaiting_input: 3, cancelled: 4 } as const

/** How a task is followed. */
interface Options {
  /** For a program: nothing but the task as it is in the end. */
  json?: boolean | undefined
  /** The `seq` of the last event that is known already. */
  after?: number
}

/**
 * Follows a task to its end, with its transcript on stderr and its result on stdout. Questions are put to the person at
 * the terminal; where there is none, they end it. Ctrl-C leaves the task going.
 *
 * @returns the exit code: 0 where it is completed, 1 failed, 3 where it waits for an answer, 4 cancelled, 128+n after a signal
 */
export async function followToEnd(
  session: Session,
  client: Client,
  task: TaskPlace,
  { json = false, after = 0 }: Options,
): Promise<number> {
  const { stdout, stderr } = session.terminal
  const view = json ? null : new TranscriptView(stderr)
  const questions = !json && canAsk(session.terminal) ? 'ask' : 'leave'
  const code = await untilInterrupted(async (signal) => {
    const settled = await followTask({ session, client, task, after, view, questions, signal })
    const found = json ? { task: await getTask(client, task.serverId, task.id) } : null
    await printResult(stdout, json, found, () => {
      const { status, result = '' } = settled
      if (status !== 'completed' || isSaid(view, settled, session)) return ''
      return ended(stdout.isTTY ? plain(result) : result)
    })
    if (settled.status === 'awaiting_input') await stderr.write(howToAnswer(task))
    return EXIT_CODES[settled.status === 'running' ? 'failed' : settled.status]
  })
  if (code > 128) await stderr.write(`\nberth: the task goes on.\n${howToGoOn(task)}`)
  return code
}

/** Whether the result is what the agent has just said to the same person. */
const isSaid = (view: TranscriptView | null, { result = '' }: Settled, { terminal }: Session): boolean =>
  terminal.stdout.isTTY && terminal.stderr.isTTY && result.trim() === (view?.lastMessage ?? '').trim()

const ended = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`)
