import type { Task } from '../../resources/tasks/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { untilInterrupted } from '../interrupt.ts'
import { path } from '../path.ts'
import { printJson, type Session } from '../session.ts'
import { readText } from './goal.ts'
import { followToEnd } from './outcome.ts'
import { plain } from './plain.ts'
import { askLine, canAsk } from './prompt.ts'
import { howToGoOn } from './show.ts'
import { readTranscript } from './transcript.ts'

/**
 * Answers the question of a task.
 *
 * @param given the answer; `-` for standard input, and without it the person is asked
 * @returns the exit code
 */
export async function answerTask(
  session: Session,
  client: Client,
  task: Task,
  given: string | undefined,
  { json, follow }: { json?: boolean; follow?: boolean },
): Promise<number> {
  const { terminal } = session
  if (given !== undefined) return send(given === '-' ? await readText('-', terminal) : given)
  if (task.question === undefined)
    throw new CommandError(`The task waits for no answer: it is ${task.status}.`)
  if (!canAsk(terminal)) throw new CommandError(`Say what the answer is: berth tasks answer ${task.id} TEXT`)
  await terminal.stderr.write(`${plain(task.question).trimEnd()}\n`)
  return untilInterrupted(async (signal) => {
    const typed = await askLine('> ', signal)
    signal.throwIfAborted()
    if (typed === null) throw new CommandError('Given up; the task still waits.', 130)
    return send(typed)
  })

  async function send(answer: string): Promise<number> {
    const known = follow && !json ? await readTranscript(client, task) : []
    const target = path`/servers/${task.serverId}/tasks/${task.id}/input`
    const answered = await client.request<{ task: Task }>('POST', target, { body: { answer } })
    if (follow) return followToEnd(session, client, task, { json, after: known.at(-1)?.seq ?? 0 })
    if (json) await printJson(session, answered)
    else await terminal.stdout.write(`Answered; the task goes on.\n${howToGoOn(task)}`)
    return 0
  }
}
