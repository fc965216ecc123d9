import type { ToolData } from '../../agents/events.ts'
import type { StoredTranscriptEvent } from '../../client/client.ts'
import type { PositionedDelta } from '../../resources/tasks/transcript.ts'
import type { Client } from '../client.ts'
import { CommandError, NO_CONNECTION } from '../errors.ts'

/** An item in a transcript's stream. */
export type TranscriptItem = StoredTranscriptEvent | PositionedDelta

/** Identifies a task. */
export interface TaskRef {
  readonly id: string
  readonly serverId: string
}

/** Reports whether an item is a stored event, not partial output. */
export const isStored = (item: TranscriptItem): item is StoredTranscriptEvent => 'seq' in item

/** Milliseconds before a broken connection is opened again, by number of failures. */
const RETRY_DELAYS_MS = [100, 300, 1_000, 2_000]

/**
 * Yields the events of a task after `after`, stored and new, with partial output, and ends with the task. Reconnects
 * after a broken connection, which may repeat partial output.
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
      // If berth stays unreachable, the first failure is the most informative.
      if (pause === undefined) throw failures[0]
      await sleep(pause, signal)
    }
  }
}

/**
 * Waits.
 *
 * @throws the signal's reason if it aborts
 */
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

/** Reads the stored events of a task after `after`. */
export async function readTranscript(
  client: Client,
  { id, serverId }: TaskRef,
  after = 0,
): Promise<StoredTranscriptEvent[]> {
  const { events } = await client.call('tasks.events', { params: { serverId, taskId: id }, query: { after } })
  return events
}

/** Returns a text of a tool's input or output. */
export const stringField = (data: ToolData, name: string): string | undefined => {
  const value = data[name]
  return typeof value === 'string' ? value : undefined
}

/** Returns a number of a tool's input or output. */
export const numberField = (data: ToolData, name: string): number | undefined => {
  const value = data[name]
  return typeof value === 'number' ? value : undefined
}
