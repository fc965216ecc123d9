import type { Task } from '../../resources/tasks/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { untilInterrupted } from '../interrupt.ts'
import { printJson, printResult } from '../output.ts'
import { toPlainText } from '../plain-text.ts'
import { isInteractive, promptLine } from '../prompt.ts'
import type { CommonOptions, Invocation } from '../runner.ts'
import type { CliSession } from '../session.ts'
import { getTask } from './find.ts'
import { readText } from './goal.ts'
import { answerHint, nextStepsText } from './show.ts'
import {
  followTranscript,
  isStored,
  readTranscript,
  type TaskRef,
  type TranscriptItem,
} from './transcript.ts'
import { TranscriptView } from './view.ts'

/** What became of a task that was followed: its end, or a question that nobody here answers. */
export type TaskOutcome = Pick<Task, 'status' | 'result' | 'question'>

/** How a task is followed. */
interface FollowRequest {
  session: CliSession
  client: Client
  task: TaskRef
  /** The `seq` of the last event that is known already. */
  after: number
  /** Where it is shown; null for nowhere. */
  view: TranscriptView | null
  /** What a question does: it is asked here, it ends the following, or a hint says how to answer it. */
  questions: 'ask' | 'leave' | 'explain'
  signal: AbortSignal
}

/** Follows a task to its end, or to a question that is not answered here. @throws CommandError where berth has gone */
export async function followTask(following: FollowRequest): Promise<TaskOutcome> {
  const { client, task, after, view, signal } = following
  const items = new PeekableIterator(followTranscript(client, task, after, signal))
  try {
    for (let item = await items.next(); item !== null; item = await items.next()) {
      await view?.show(item)
      if (!isStored(item) || item.type !== 'status' || item.status === 'running') continue
      if (item.status !== 'awaiting_input') return item
      const left = await handleQuestion(following, items)
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
async function handleQuestion(
  following: FollowRequest,
  items: PeekableIterator<TranscriptItem>,
): Promise<TaskOutcome | null> {
  const { session, client, task, questions } = following
  const now = await getTask(client, task.serverId, task.id)
  // What has come late may have been answered long ago.
  if (now.status !== 'awaiting_input') return null
  if (questions === 'explain') await session.context.stderr.write(answerHint(task))
  const goesOn = questions === 'explain' || (questions === 'ask' && (await promptForAnswer(following, items)))
  return goesOn ? null : now
}

/**
 * Has the person answer, unless somebody else does, or the task ends, before.
 *
 * @returns false where no answer is given
 */
async function promptForAnswer(
  { session, client, task, view, signal }: FollowRequest,
  items: PeekableIterator<TranscriptItem>,
): Promise<boolean> {
  const elsewhere = new AbortController()
  const typed = promptLine('> ', AbortSignal.any([signal, elsewhere.signal]))
  for (let ahead = 0; ; ahead += 1) {
    const first = await Promise.race([typed.then((answer) => ({ answer })), items.peek(ahead)])
    signal.throwIfAborted()
    if (first !== null && !('type' in first)) {
      if (first.answer === null) return false
      view?.noteTyped(first.answer)
      return sendAnswer(session, client, task, first.answer)
    }
    // The end, an answer and a status say that it waits no more; what else comes is shown later.
    if (first !== null && first.type !== 'answer' && first.type !== 'status') continue
    elsewhere.abort()
    await typed
    // What was typed so far goes from the line that the prompt stands on.
    await session.context.stderr.write('\r\u001b[K')
    return true
  }
}

/** @returns true: whether it was this answer or another's, the task goes on */
async function sendAnswer(session: CliSession, client: Client, task: TaskRef, answer: string): Promise<true> {
  const params = { serverId: task.serverId, taskId: task.id }
  try {
    await client.call('tasks.answer', { params, body: { answer } })
  } catch (error) {
    if (!(error instanceof CommandError) || error.code !== 'bad_request') throw error
    await session.context.stderr.write(`berth: ${toPlainText(error.message)}\n`)
  }
  return true
}

/** Reads on while what was read waits to be taken. */
class PeekableIterator<Item> {
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
    while (this.#read.length <= index) this.#read.push(this.#pull())
    return this.#read[index] ?? Promise.resolve(null)
  }

  #pull(): Promise<Item | null> {
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
  session: CliSession,
  client: Client,
  task: TaskRef,
  { json = false, after = 0 }: FollowOptions,
): Promise<number> {
  const { stdout, stderr } = session.context
  const view = json ? null : new TranscriptView(stderr)
  const questions = !json && isInteractive(session.context) ? 'ask' : 'leave'
  const code = await untilInterrupted(async (signal) => {
    const settled = await followTask({ session, client, task, after, view, questions, signal })
    const found = json ? { task: await getTask(client, task.serverId, task.id) } : null
    await printResult(stdout, json, found, () => {
      const { status, result = '' } = settled
      if (status !== 'completed' || isShownAlready(view, settled, session)) return ''
      return withNewline(stdout.isTTY ? toPlainText(result) : result)
    })
    if (settled.status === 'awaiting_input') await stderr.write(answerHint(task))
    return EXIT_CODES[settled.status === 'running' ? 'failed' : settled.status]
  })
  if (code > 128) await stderr.write(`\nberth: the task goes on.\n${nextStepsText(task)}`)
  return code
}

/** Whether the result is what the agent has just said to the same person. */
const isShownAlready = (
  view: TranscriptView | null,
  { result = '' }: TaskOutcome,
  { context }: CliSession,
): boolean =>
  context.stdout.isTTY && context.stderr.isTTY && result.trim() === (view?.lastMessage ?? '').trim()

const withNewline = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`)

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
  session: CliSession,
  client: Client,
  task: TaskRef,
  { follow = false, after = 0, json = false }: EventOptions,
): Promise<number> {
  const print = json ? printLines : printText
  const reading: TranscriptRequest = { session, client, task, after }
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
interface TranscriptRequest {
  session: CliSession
  client: Client
  task: TaskRef
  /** The `seq` of the last event that is left out. */
  after: number
  /** Ends the following; undefined if only what is there is printed. */
  signal?: AbortSignal
}

/** Prints a line of JSON for each event; the pieces of output in between are left out. */
async function printLines({ session, client, task, after, signal }: TranscriptRequest): Promise<void> {
  const items = signal
    ? followTranscript(client, task, after, signal)
    : await readTranscript(client, task, after)
  for await (const item of items) if (isStored(item)) await printJson(session.context.stdout, item)
}

/** Prints a transcript for people, with the result of a task that has ended. */
async function printText({ session, client, task, after, signal }: TranscriptRequest): Promise<void> {
  const view = new TranscriptView(session.context.stdout)
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
  { context: { stdout, stderr } }: CliSession,
  task: TaskRef,
  { status, result }: { status: string; result?: string },
): Promise<void> {
  if (status === 'completed' && result) await stdout.write(`${toPlainText(result).trimEnd()}\n`)
  if (status === 'awaiting_input') await stderr.write(answerHint(task))
}

/** An answer to the question of a task. */
interface AnswerRequest {
  session: CliSession
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
export async function answerTask(answering: AnswerRequest): Promise<number> {
  const { session, task, given } = answering
  const { context } = session
  if (given !== undefined) return send(answering, given === '-' ? await readText('-', context) : given)
  if (task.question === undefined)
    throw new CommandError(`The task waits for no answer: it is ${task.status}.`)
  if (!isInteractive(context))
    throw new CommandError(`Say what the answer is: berth tasks answer ${task.id} TEXT`)
  await context.stderr.write(`${toPlainText(task.question).trimEnd()}\n`)
  return untilInterrupted(async (signal) => {
    const typed = await promptLine('> ', signal)
    signal.throwIfAborted()
    if (typed === null) throw new CommandError('Given up; the task still waits.', 130)
    return send(answering, typed)
  })
}

async function send(
  { session, client, task, options, print }: AnswerRequest,
  answer: string,
): Promise<number> {
  const { follow, json } = options
  const known = follow && !json ? await readTranscript(client, task) : []
  const params = { serverId: task.serverId, taskId: task.id }
  const response = await client.call('tasks.answer', { params, body: { answer } })
  if (follow) return followToEnd(session, client, task, { json, after: known.at(-1)?.seq ?? 0 })
  await print(response, () => `Answered; the task goes on.\n${nextStepsText(task)}`)
  return 0
}
