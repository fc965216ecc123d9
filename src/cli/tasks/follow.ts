import type { Task } from '../../resources/tasks/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { plain } from '../plain-text.ts'
import type { Session } from '../session.ts'
import { getTask } from './find.ts'
import { askLine } from './prompt.ts'
import { howToAnswer } from './show.ts'
import { followTranscript, isKept, type TaskPlace, type TranscriptItem } from './transcript.ts'
import type { TranscriptView } from './view.ts'

/** What became of a task that was followed: its end, or a question that nobody here answers. */
export type Settled = Pick<Task, 'status' | 'result' | 'question'>

/** How a task is followed. */
interface Following {
  session: Session
  client: Client
  task: TaskPlace
  /** The `seq` of the last event that is known already. */
  after: number
  /** Where it is shown; null for nowhere. */
  view: TranscriptView | null
  /** What a question does: it is asked here, it ends the following, or a hint says how to answer it. */
  questions: 'ask' | 'leave' | 'explain'
  signal: AbortSignal
}

/** Follows a task to its end, or to a question that is not answered here. @throws CommandError where berth has gone */
export async function followTask(following: Following): Promise<Settled> {
  const { client, task, after, view, signal } = following
  const items = new Ahead(followTranscript(client, task, after, signal))
  try {
    for (let item = await items.next(); item !== null; item = await items.next()) {
      await view?.show(item)
      if (!isKept(item) || item.type !== 'status' || item.status === 'running') continue
      if (item.status !== 'awaiting_input') return item
      const left = await atQuestion(following, items)
      if (left) return left
    }
  } finally {
    await view?.end()
  }
  const now = await getTask(client, task.serverId, task.id)
  if (now.status === 'running' || now.status === 'awaiting_input') {
    throw new CommandError('The connection closed before the task ended. Is berth still running?')
  }
  return now
}

/** @returns the task where it is left with its question; null where it goes on */
async function atQuestion(following: Following, items: Ahead<TranscriptItem>): Promise<Settled | null> {
  const { session, client, task, questions } = following
  const now = await getTask(client, task.serverId, task.id)
  // What has come late may have been answered long ago.
  if (now.status !== 'awaiting_input') return null
  if (questions === 'explain') await session.terminal.stderr.write(howToAnswer(task))
  const goesOn = questions === 'explain' || (questions === 'ask' && (await answerHere(following, items)))
  return goesOn ? null : now
}

/**
 * Has the person answer, unless somebody else does, or the task ends, before.
 *
 * @returns false where no answer is given
 */
async function answerHere(
  { session, client, task, view, signal }: Following,
  items: Ahead<TranscriptItem>,
): Promise<boolean> {
  const elsewhere = new AbortController()
  const typed = askLine('> ', AbortSignal.any([signal, elsewhere.signal]))
  for (let ahead = 0; ; ahead += 1) {
    const first = await Promise.race([typed.then((answer) => ({ answer })), items.peek(ahead)])
    signal.throwIfAborted()
    if (first !== null && !('type' in first)) {
      if (first.answer === null) return false
      view?.hasTyped(first.answer)
      return sendAnswer(session, client, task, first.answer)
    }
    // The end, an answer and a status say that it waits no more; what else comes is shown later.
    if (first !== null && first.type !== 'answer' && first.type !== 'status') continue
    elsewhere.abort()
    await typed
    // What was typed so far goes from the line that the prompt stands on.
    await session.terminal.stderr.write('\r\u001b[K')
    return true
  }
}

/** @returns true: whether it was this answer or another's, the task goes on */
async function sendAnswer(session: Session, client: Client, task: TaskPlace, answer: string): Promise<true> {
  const params = { serverId: task.serverId, taskId: task.id }
  try {
    await client.call('tasks.answer', { params, body: { answer } })
  } catch (error) {
    if (!(error instanceof CommandError) || error.code !== 'bad_request') throw error
    await session.terminal.stderr.write(`berth: ${plain(error.message)}\n`)
  }
  return true
}

/** Reads on while what was read waits to be taken. */
class Ahead<Item> {
  readonly #source: AsyncGenerator<Item, void>
  #read: Promise<Item | null>[] = []

  constructor(source: AsyncGenerator<Item, void>) {
    this.#source = source
  }

  /** Takes the next; null at the end. */
  next(): Promise<Item | null> {
    const next = this.peek(0)
    this.#read.shift()
    return next
  }

  /** The one that comes after `index` others, which stays to be taken. */
  peek(index: number): Promise<Item | null> {
    while (this.#read.length <= index) this.#read.push(this.#one())
    return this.#read[index] ?? Promise.resolve(null)
  }

  #one(): Promise<Item | null> {
    const one = this.#source.next().then(({ value }) => value ?? null)
    // The one that takes it gets the failure.
    one.catch(() => {})
    return one
  }
}
