import type { Task } from '../../resources/tasks/model.ts'
import type { Client } from '../client.ts'
import type { CommonOptions, Invocation } from '../command.ts'
import { CommandError } from '../errors.ts'
import { followWork } from '../follow.ts'
import { untilInterrupted } from '../interrupt.ts'
import { printJson, printResult } from '../output.ts'
import { toPlainText } from '../plain-text.ts'
import { isInteractive } from '../process-context.ts'
import { promptLine } from '../prompt.ts'
import type { CliSession } from '../session.ts'
import { CLEAR_LINE } from '../terminal-text.ts'
import { getTask } from './find.ts'
import { readText } from './goal.ts'
import { answerHint, nextStepsText } from './show.ts'
import {
  isStored,
  storedTranscript,
  streamTranscript,
  type TaskRef,
  type TranscriptItem,
} from './transcript.ts'
import { TranscriptView } from './view.ts'

/** The outcome of a followed task: its end, or a question that is not answered here. */
type TaskOutcome = Pick<Task, 'status' | 'result' | 'question'>

/** A task to follow. */
interface FollowRequest {
  session: CliSession
  client: Client
  task: TaskRef
  /** `seq` of the last known event. */
  after: number
  /** View to show the transcript in; null for none. */
  view: TranscriptView | null
  /** How to handle a question: ask the person here, stop following, or print how to answer it. */
  questions: 'ask' | 'leave' | 'explain'
  signal: AbortSignal
}

/**
 * Follows a task to its end, or to a question that is not answered here.
 *
 * @throws CommandError if berth is gone
 */
export async function followTask(request: FollowRequest): Promise<TaskOutcome> {
  const { client, task, after, view, signal } = request
  const items = new PeekableIterator(streamTranscript(client, task, after, signal))
  try {
    for (let item = await items.next(); item !== null; item = await items.next()) {
      await view?.show(item)
      if (!isStored(item) || item.type !== 'status' || item.status === 'running') continue
      if (item.status !== 'awaiting_input') return item
      const left = await handleQuestion(request, items)
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

/**
 * Handles a question.
 *
 * @returns the task if it stays unanswered; null if the task continues
 */
async function handleQuestion(
  request: FollowRequest,
  items: PeekableIterator<TranscriptItem>,
): Promise<TaskOutcome | null> {
  const { session, client, task, questions } = request
  const now = await getTask(client, task.serverId, task.id)
  // The question may have been answered before its event arrived.
  if (now.status !== 'awaiting_input') return null
  if (questions === 'explain') await session.context.stderr.write(answerHint(task))
  const continues =
    questions === 'explain' || (questions === 'ask' && (await promptForAnswer(request, items)))
  return continues ? null : now
}

/**
 * Asks the person for an answer, unless another client answers or the task ends first.
 *
 * @returns false if no answer is given
 */
async function promptForAnswer(
  { session, client, task, view, signal }: FollowRequest,
  items: PeekableIterator<TranscriptItem>,
): Promise<boolean> {
  const cancelPrompt = new AbortController()
  const typed = promptLine('> ', AbortSignal.any([signal, cancelPrompt.signal]))
  for (let ahead = 0; ; ahead += 1) {
    const first = await Promise.race([typed.then((answer) => ({ answer })), items.peek(ahead)])
    signal.throwIfAborted()
    if (first !== null && !('type' in first)) {
      if (first.answer === null) return false
      view?.noteTyped(first.answer)
      return sendAnswer(session, client, task, first.answer)
    }
    // A status or an answer means that the task no longer waits. Other events are shown later.
    if (first !== null && first.type !== 'answer' && first.type !== 'status') continue
    cancelPrompt.abort()
    await typed
    // Clears the prompt's line with the text typed so far.
    await session.context.stderr.write(CLEAR_LINE)
    return true
  }
}

/**
 * Sends an answer.
 *
 * @returns true: the task continues with this answer or an earlier one
 */
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

/** Reads ahead without consuming items. */
class PeekableIterator<Item> {
  readonly #source: AsyncGenerator<Item, void>
  #read: Promise<Item | null>[] = []

  constructor(source: AsyncGenerator<Item, void>) {
    this.#source = source
  }

  /** Consumes the next item; null at the end. */
  next(): Promise<Item | null> {
    const next = this.peek(0)
    this.#read.shift()
    return next
  }

  /** Returns the item after `index` others without consuming it. */
  peek(index: number): Promise<Item | null> {
    while (this.#read.length <= index) this.#read.push(this.#pull())
    return this.#read[index] ?? Promise.resolve(null)
  }

  #pull(): Promise<Item | null> {
    const one = this.#source.next().then(({ value }) => value ?? null)
    // The caller that consumes it gets the error.
    one.catch(() => {})
    return one
  }
}

/** Exit codes by status of a task. */
const EXIT_CODES = { completed: 0, failed: 1, awaiting_input: 3, cancelled: 4 } as const

/** How to follow a task. */
interface FollowOptions {
  /** Prints only the final task. */
  json?: boolean | undefined
  /** `seq` of the last known event. */
  after?: number
}

/**
 * Follows a task to its end, with its transcript on stderr and its result on stdout. Asks a person at the terminal
 * its questions; without a terminal, stops at a question. Ctrl-C ends the following, not the task.
 *
 * @returns the exit code: 0 if it is completed, 1 failed, 3 if it waits for an answer, 4 cancelled, 128+n after a
 * signal
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
  const hint = `the task goes on.\n${nextStepsText(task)}`
  return followWork(stderr, hint, async (signal) => {
    const outcome = await followTask({ session, client, task, after, view, questions, signal })
    const found = json ? { task: await getTask(client, task.serverId, task.id) } : null
    await printResult(stdout, json, found, () => {
      const { status, result = '' } = outcome
      if (status !== 'completed' || isShownAlready(view, outcome, session)) return ''
      return withNewline(stdout.isTTY ? toPlainText(result) : result)
    })
    if (outcome.status === 'awaiting_input') await stderr.write(answerHint(task))
    return EXIT_CODES[outcome.status === 'running' ? 'failed' : outcome.status]
  })
}

/** Reports whether the person has already seen the result as the agent's last message. */
const isShownAlready = (
  view: TranscriptView | null,
  { result = '' }: TaskOutcome,
  { context }: CliSession,
): boolean =>
  context.stdout.isTTY && context.stderr.isTTY && result.trim() === (view?.lastMessage ?? '').trim()

const withNewline = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`)

/** How to print a transcript. */
interface EventOptions {
  follow?: boolean | undefined
  after?: number | undefined
  json?: boolean
}

/**
 * Prints the transcript of a task; with `follow`, continues with new events.
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
  const request: TranscriptRequest = { session, client, task, after }
  if (!follow) {
    await print(request)
    return 0
  }
  return untilInterrupted(async (signal) => {
    await print({ ...request, signal })
    return 0
  })
}

/** A transcript to print. */
interface TranscriptRequest {
  session: CliSession
  client: Client
  task: TaskRef
  /** `seq` of the last event to skip. */
  after: number
  /** Ends the following. If undefined, only existing events are printed. */
  signal?: AbortSignal
}

/** Prints a line of JSON for each event, without partial output. */
async function printLines({ session, client, task, after, signal }: TranscriptRequest): Promise<void> {
  const items = signal
    ? streamTranscript(client, task, after, signal)
    : await storedTranscript(client, task, after)
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
  const events = await storedTranscript(client, task, after)
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

/** An answer to send to a task. */
interface AnswerRequest {
  session: CliSession
  client: Client
  task: Task
  /** The answer; `-` reads standard input. If undefined, the person is asked. */
  given: string | undefined
  options: CommonOptions & { follow?: boolean | undefined }
  print: Invocation<unknown, unknown>['print']
}

/**
 * Answers the question of a task.
 *
 * @returns the exit code
 */
export async function answerTask(request: AnswerRequest): Promise<number> {
  const { session, task, given } = request
  const { context } = session
  if (given !== undefined) return send(request, given === '-' ? await readText('-', context) : given)
  if (task.question === undefined)
    throw new CommandError(`The task waits for no answer: it is ${task.status}.`)
  if (!isInteractive(context))
    throw new CommandError(`Say what the answer is: berth tasks answer ${task.id} TEXT`)
  await context.stderr.write(`${toPlainText(task.question).trimEnd()}\n`)
  return untilInterrupted(async (signal) => {
    const typed = await promptLine('> ', signal)
    signal.throwIfAborted()
    if (typed === null) throw new CommandError('Given up; the task still waits.', 130)
    return send(request, typed)
  })
}

async function send(
  { session, client, task, options, print }: AnswerRequest,
  answer: string,
): Promise<number> {
  const { follow, json } = options
  const known = follow && !json ? await storedTranscript(client, task) : []
  const params = { serverId: task.serverId, taskId: task.id }
  const response = await client.call('tasks.answer', { params, body: { answer } })
  if (follow) return followToEnd(session, client, task, { json, after: known.at(-1)?.seq ?? 0 })
  await print(response, () => `Answered; the task goes on.\n${nextStepsText(task)}`)
  return 0
}
