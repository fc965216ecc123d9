import type { Client } from '../client.ts'
import { untilInterrupted } from '../interrupt.ts'
import { printJson } from '../output.ts'
import { plain } from '../plain-text.ts'
import type { Session } from '../session.ts'
import { followTask } from './follow.ts'
import { howToAnswer } from './show.ts'
import { followTranscript, isKept, readTranscript, type TaskPlace } from './transcript.ts'
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
