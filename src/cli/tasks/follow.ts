import type { Task } from '../../resources/tasks/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { untilInterrupted } from '../interrupt.ts'
import { printJson, printResult } from '../output.ts'
import { plain } from '../plain-text.ts'
import { askLine, canAsk } from '../prompt.ts'
import type { CommonOptions, Invocation } from '../runner.ts'
import type { Session } from '../session.ts'
import { getTask } from './find.ts'
import { readText } from './goal.ts'
import { howToAnswer, howToGoOn } from './show.ts'
import {
  followTranscript,
  isKept,
  readTranscript,
  type TaskPlace,
  type TranscriptItem,
} from './transcript.ts'
import { TranscriptView } from './view.ts'

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

/** The exit code by what became of a task. */
const EXIT_CODES = { completed: 0, failed: 1, awaiting_input: 3, cancelled: 4 } as const

/** How a task is followed. */
interface FollowOptions {
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
  { json = false, after = 0 }: FollowOptions,
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

/** How a transcript is printed. */
interface EventOptions {
  follow?: boolean | undefined
  after?: number | undefined
  json?: boolean
}

/**
 * Prints the transcript of a task; with `follow` continues with new events.
 *
 * @returns the exit code
 */
export async function showEvents(
  session: Session,
  client: Client,
  task: TaskPlace,
  { follow = false, after = 0, json = false }: EventOptions,
): Promise<number> {
  const print = json ? printLines : printText
  const reading: Reading = { session, client, task, after }
  if (!follow) {
    await print(reading)
    return 0
  }
  return untilInterrupted(async (signal) => {
    await print({ ...reading, signal })
    return 0
  })
}

/** A transcript that is being printed. */
interface Reading {
  session: Session
  client: Client
  task: TaskPlace
  /** The `seq` of the last event that is left out. */
  after: number
  /** Ends the following; undefined if only what is there is printed. */
  signal?: AbortSignal
}

/** Prints a line of JSON for each event; the pieces of output in between are left out. */
async function printLines({ session, client, task, after, signal }: Reading): Promise<void> {
  const items = signal
    ? followTranscript(client, task, after, signal)
    : await readTranscript(client, task, after)
  for await (const item of items) if (isKept(item)) await printJson(session.terminal.stdout, item)
}

/** Prints a transcript for people, with the result of a task that has ended. */
async function printText({ session, client, task, after, signal }: Reading): Promise<void> {
  const view = new TranscriptView(session.terminal.stdout)
  if (signal) {
    const questions = 'explain'
    await printEnd(session, task, await followTask({ session, client, task, after, view, questions, signal }))
    return
  }
  const events = await readTranscript(client, task, after)
  for (const event of events) await view.show(event)
  await view.end()
  const last = events.at(-1)
  if (last?.type === 'status') await printEnd(session, task, last)
}

async function printEnd(
  { terminal: { stdout, stderr } }: Session,
  task: TaskPlace,
  { status, result }: { status: string; result?: string },
): Promise<void> {
  if (status === 'completed' && result) await stdout.write(`${plain(result).trimEnd()}\n`)
  if (status === 'awaiting_input') await stderr.write(howToAnswer(task))
}

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
