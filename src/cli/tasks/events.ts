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
 * Prints the transcript of a task, and goes on with what comes where that is wished for.
 *
 * @returns the exit code
 */
export async function showEvents(
  session: Session,
  client: Client,
  task: TaskPlace,
  { follow = false, after = 0, json = false }: Options,
): Promise<number> {
  if (follow) return untilInterrupted((signal) => goOn(session, client, task, { after, json, signal }))
  const events = await readTranscript(client, task, after)
  if (json) {
    for (const event of events) await printJson(session.terminal.stdout, event)
    return 0
  }
  const view = new TranscriptView(session.terminal.stdout)
  for (const event of events) await view.show(event)
  await view.end()
  const last = events.at(-1)
  if (last?.type === 'status') await printEnd(session, task, last)
  return 0
}

async function goOn(
  session: Session,
  client: Client,
  task: TaskPlace,
  { after, json, signal }: { after: number; json: boolean; signal: AbortSignal },
): Promise<number> {
  if (json) {
    for await (const item of followTranscript(client, task, after, signal))
      if (isKept(item)) await printJson(session.terminal.stdout, item)
    return 0
  }
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
