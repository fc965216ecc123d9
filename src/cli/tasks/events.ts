import type { Client } from '../client.ts'
import { untilInterrupted } from '../interrupt.ts'
import { printJson } from '../output.ts'
import { plain } from '../plain-text.ts'
import type { Session } from '../session.ts'
import type { Sink } from '../terminal.ts'
import { followTask } from './follow.ts'
import { howToAnswer } from './show.ts'
import {
  followTranscript,
  isKept,
  readTranscript,
  type TaskPlace,
  type TranscriptItem,
} from './transcript.ts'
import { TranscriptView } from './view.ts'

/** How a transcript is printed. */
interface Options {
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
  { follow = false, after = 0, json = false }: Options,
): Promise<number> {
  const { stdout } = session.terminal
  if (follow) {
    return untilInterrupted((signal) =>
      json
        ? printLines(stdout, followTranscript(client, task, after, signal))
        : followForPeople(session, client, task, after, signal),
    )
  }
  const events = await readTranscript(client, task, after)
  if (json) return printLines(stdout, events)
  const view = new TranscriptView(stdout)
  for (const event of events) await view.show(event)
  await view.end()
  const last = events.at(-1)
  if (last?.type === 'status') await printEnd(session, task, last)
  return 0
}

/** Prints a line of JSON for each event; the pieces of output in between are left out. */
async function printLines(
  sink: Sink,
  items: Iterable<TranscriptItem> | AsyncIterable<TranscriptItem>,
): Promise<number> {
  for await (const item of items) if (isKept(item)) await printJson(sink, item)
  return 0
}

async function followForPeople(
  session: Session,
  client: Client,
  task: TaskPlace,
  after: number,
  signal: AbortSignal,
): Promise<number> {
  const view = new TranscriptView(session.terminal.stdout)
  const questions = 'explain'
  await printEnd(session, task, await followTask({ session, client, task, after, view, questions, signal }))
  return 0
}

async function printEnd(
  { terminal: { stdout, stderr } }: Session,
  task: TaskPlace,
  { status, result }: { status: string; result?: string },
): Promise<void> {
  if (status === 'completed' && result) await stdout.write(`${plain(result).trimEnd()}\n`)
  if (status === 'awaiting_input') await stderr.write(howToAnswer(task))
}
