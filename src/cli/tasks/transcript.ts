import type { ToolData } from '../../agents/events.ts'
import type { StoredTranscriptEvent } from '../../client/client.ts'
import type { PositionedDelta } from '../../resources/tasks/transcript.ts'
import type { Client } from '../client.ts'
import { CommandError, NO_CONNECTION } from '../errors.ts'

/** What a stream of a transcript brings. */
export type TranscriptItem = StoredTranscriptEvent | PositionedDelta

/** Where a task is. */
export interface TaskRef {
  readonly id: string
  readonly serverId: string
}

/** Whether it is an event that is kept, not a piece of output. */
export const isStored = (item: TranscriptItem): item is StoredTranscriptEvent => 'seq' in item

/** Milliseconds before a connection that broke is made again, from one failure to the next. */
const RETRY_DELAYS_MS = [100, 300, 1_000, 2_000]

/**
 * The events of a task after one, and those that come, with output while it is printed; ends with the task. Where the
 * connection breaks it goes on over another one; output that is under way may come again then.
 */
export async function* followTranscript(
  client: Client,
  task: TaskRef,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<TranscriptItem, void> {
  let last = after
  let failures: CommandError[] = []
  for (;;) {
    try {
      for await (const item of connected(client, task, last, signal)) {
        failures = []
        if (isStored(item)) last = item.seq
        yield item
      }
      return
    } catch (error) {
      if (signal.aborted || !(error instanceof CommandError) || error.code !== NO_CONNECTION) throw error
      const pause = RETRY_DELAYS_MS[failures.length]
      failures.push(error)
      // If berth does not come back, the first failure says more than those that follow from it.
      if (pause === undefined) throw failures[0]
      await sleep(pause, signal)
    }
  }
}

/** @throws the signal's reason as soon as it fires */
async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  signal.addEventListener('abort', () => resolve(), { once: true })
  await promise
  clearTimeout(timer)
  signal.throwIfAborted()
}

async function* connected(
  client: Client,
  { id, serverId }: TaskRef,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<TranscriptItem, void> {
  const params = { serverId, taskId: id }
  for await (const { data } of client.stream('tasks.events', { params, query: { after }, signal })) yield data
}

/** Reads the events of a task after one that are there by now. */
export async function readTranscript(
  client: Client,
  { id, serverId }: TaskRef,
  after = 0,
): Promise<StoredTranscriptEvent[]> {
  const { events } = await client.call('tasks.events', { params: { serverId, taskId: id }, query: { after } })
  return events
}

/** A text among what a tool was given or gave back. */
export const stringField = (data: ToolData, name: string): string | undefined => {
  const value = data[name]
  return typeof value === 'string' ? value : undefined
}

/** A number among them. */
export const numberField = (data: ToolData, name: string): number | undefined => {
  const value = data[name]
  return typeof value === 'number' ? value : undefined
}
