import type { Task } from '../../resources/tasks/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { untilInterrupted } from '../interrupt.ts'
import { plain } from '../plain-text.ts'
import type { CommonOptions, Invocation } from '../runner.ts'
import type { Session } from '../session.ts'
import { readText } from './goal.ts'
import { followToEnd } from './outcome.ts'
import { askLine, canAsk } from './prompt.ts'
import { howToGoOn } from './show.ts'
import { readTranscript } from './transcript.ts'

/** An answer to the question of a task. */
interface Answering {
  session: Session
  client: Client
  task: Task
  /** The answer; `-` for standard input. Without it the person is asked. */
  given: string | undefined
  options: CommonOptions & { follow?: boolean | undefined }
  print: Invocation<unknown, unknown>['print']
}

/**
 * Answers the question of a task.
 *
 * @returns the exit code
 */
export async function answerTask(answering: Answering): Promise<number> {
  const { session, task, given } = answering
  const { terminal } = session
  if (given !== undefined) return send(answering, given === '-' ? await readText('-', terminal) : given)
  if (task.question === undefined)
    throw new CommandError(`The task waits for no answer: it is ${task.status}.`)
  if (!canAsk(terminal)) throw new CommandError(`Say what the answer is: berth tasks answer ${task.id} TEXT`)
  await terminal.stderr.write(`${plain(task.question).trimEnd()}\n`)
  return untilInterrupted(async (signal) => {
    const typed = await askLine('> ', signal)
    signal.throwIfAborted()
    if (typed === null) throw new CommandError('Given up; the task still waits.', 130)
    return send(answering, typed)
  })
}

async function send({ session, client, task, options, print }: Answering, answer: string): Promise<number> {
  const { follow, json } = options
  const known = follow && !json ? await readTranscript(client, task) : []
  const params = { serverId: task.serverId, taskId: task.id }
  const response = await client.call('tasks.answer', { params, body: { answer } })
  if (follow) return followToEnd(session, client, task, { json, after: known.at(-1)?.seq ?? 0 })
  await print(response, () => `Answered; the task goes on.\n${howToGoOn(task)}`)
  return 0
}
