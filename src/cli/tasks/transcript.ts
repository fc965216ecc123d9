import type { ToolData } from '../../agents/events.ts'
import type { ShownDelta } from '../../resources/tasks/transcript.ts'
import type { TranscriptEvent } from '../../resources/tasks/transcript-event.ts'
import { type Client, NO_CONNECTION } from '../client.ts'
import { CommandError } from '../errors.ts'
import { path } from '../path.ts'

/** An event of a transcript, as the API gives it. */
export type KeptEvent = TranscriptEvent & { readonly seq: number; readonly at: string }

/** What a stream of a transcript brings. */
export type TranscriptItem = KeptEvent | ShownDelta

/** Where a task is. */
export interface TaskPlace {
  readonly id: string
  readonly serverId: string
}

/** Whether it is an event that is kept, not a piece of output. */
export const isKept = (item: TranscriptItem): item is KeptEvent => 'seq' in item

/** Milliseconds before a connection that broke is made again, from one failure to the next. */
const PAUSES_MS = [100, 300, 1_000, 2_000]

/**
 * The events of a task after one, and those that come, with output while it is printed; ends with the task. Where the
 * connection breaks it goes on over another one; output that is under way may be told again then.
 */
export async function* followTranscript(
  client: Client,
  task: TaskPlace,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<TranscriptItem, void> {
  let last = after
  let failures: CommandError[] = []
  for (;;) {
    try {
      for await (const item of connected(client, task, last, signal)) {
        failures = []
        if (isKept(item)) last = item.seq
        yield item
      }
      return
    } catch (error) {
      if (signal.aborted || !(error instanceof CommandError) || error.code !== NO_CONNECTION) throw error
      const pause = PAUSES_MS[failures.length]
      failures.push(error)
      // Where berth does not come back, the first failure tells more than what comes of it.
      if (pause === undefined) throw failures[0]
      await pausing(pause, signal)
    }
  }
}

/** @throws the signal's reason as soon as it fires */
async function pausing(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  signal.addEventListener('abort', () => resolve(), { once: true })
  await promise
  clearTimeout(timer)
  signal.throwIfAborted()
}

async function* connected(
  client: Client,
  { id, serverId }: TaskPlace,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<TranscriptItem, void> {
  const query = { after: String(after) }
  for await (const { data } of client.events('GET', path`/servers/${serverId}/tasks/${id}/events`, {
    query,
    signal,
  })) {
    yield JSON.parse(data) as TranscriptItem
  }
}

/** The events of a task after one that are there by now. */
export async function readTranscript(
  client: Client,
  { id, serverId }: TaskPlace,
  after = 0,
): Promise<KeptEvent[]> {
  const query = { after: String(after) }
  const target = path`/servers/${serverId}/tasks/${id}/events`
  return (await client.request<{ events: KeptEvent[] }>('GET', target, { query })).events
}

/** A text among what a tool was given or gave back. */
export const textIn = (data: ToolData, name: string): string | undefined => {
  const value = data[name]
  return typeof value === 'string' ? value : undefined
}

/** A number among them. */
export const numberIn = (data: ToolData, name: string): number | undefined => {
  const value = data[name]
  return typeof value === 'number' ? value : undefined
}
