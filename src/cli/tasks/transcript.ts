import type { ToolData } from '../../agents/agents.ts'
import type { PositionedDelta } from '../../resources/tasks/transcript.ts'
import type { StoredTranscriptEvent } from '../../route-client/client.ts'
import type { Client } from '../client.ts'
import type { CommandError } from '../errors.ts'
import { isTransient, waitBeforeRetry } from '../reconnect.ts'

/** An item in a transcript's stream. */
export type TranscriptItem = StoredTranscriptEvent | PositionedDelta

/** Identifies a task. */
export interface TaskRef {
  readonly id: string
  readonly serverId: string
}

/** Reports whether an item is a stored event, not partial output. */
export const isStored = (item: TranscriptItem): item is StoredTranscriptEvent => 'seq' in item

/** Largest number of attempts to open a broken connection again, over about three seconds. @bound program */
const MAX_RETRIES = 10

/**
 * Yields the events of a task after `after`, stored and new, with partial output, and ends with the task. Reconnects
 * after a broken connection, which may repeat partial output.
 */
export async function* streamTranscript(
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
      if (signal.aborted || !isTransient(error, failures.length)) throw error
      failures.push(error)
      // If berth stays unreachable, the first failure is the most informative.
      if (failures.length > MAX_RETRIES) throw failures[0]
      await waitBeforeRetry(failures.length, signal)
    }
  }
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
export async function storedTranscript(
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
