import { type ReadonlySignal, signal } from '@preact/signals'
import type { ApiClient } from '../../api/client.ts'
import { followTask } from '../task/follow.ts'
import { Transcript, type Entry as TranscriptEntry } from '../task/transcript.ts'

/** Tasks that are followed at a time. Each takes one of the six connections that a browser has to a host. */
const MOST = 2

/** What an agent does for the tasks that a person has opened in the timeline. */
export class TaskSteps {
  readonly #open = signal<ReadonlyMap<string, { transcript: Transcript; close: () => void }>>(new Map())
  readonly #api: ApiClient

  constructor(api: ApiClient) {
    this.#api = api
  }

  /** The ids of the open tasks. */
  get ids(): ReadonlySet<string> {
    return new Set(this.#open.value.keys())
  }

  /** Returns the conversation of an open task so far; undefined if it is closed. */
  of(taskId: string): ReadonlySignal<readonly TranscriptEntry[]> | undefined {
    return this.#open.value.get(taskId)?.transcript.entries
  }

  /** Opens a task, or closes it. Beyond two, the one that was opened first is closed. */
  toggle(id: string, serverId: string): void {
    const open = new Map(this.#open.peek())
    const known = open.get(id)
    known?.close()
    if (!open.delete(id)) {
      const [first] = open
      if (first !== undefined && open.size >= MOST) {
        first[1].close()
        open.delete(first[0])
      }
      const transcript = new Transcript()
      // What cannot be read now is tried again.
      const close = followTask(this.#api, { id, serverId }, transcript, () => {})
      open.set(id, { transcript, close })
    }
    this.#open.value = open
  }

  /** Closes all. */
  close(): void {
    for (const { close } of this.#open.peek().values()) close()
    this.#open.value = new Map()
  }
}
