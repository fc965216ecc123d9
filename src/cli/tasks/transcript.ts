import type { ToolData } from '../../agents/events.ts'
import type { ShownDelta, TranscriptEvent } from '../../resources/tasks/transcript.ts'
import type { Client } from '../client.ts'
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

/** The events of a task after one, and those that come, with output while it is printed; ends with the task. */
export async function* followTranscript(
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
