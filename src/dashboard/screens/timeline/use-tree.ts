import { type ReadonlySignal, signal } from '@preact/signals'
import { useMemo, useState } from 'preact/hooks'
import type { ApiClient } from '../../api/client.ts'
import { useDashboard } from '../../dashboard.ts'
import { RequestReader } from '../requests/facts.tsx'
import { followTranscript, TaskTranscript, type TranscriptEntry } from '../task/transcript.ts'
import { growTree, type TreeEntry } from './tree.ts'

/** The same at each drawing. */
const NONE: readonly never[] = []

/**
 * Returns everything that is known to have happened, and keeps it up to date.
 *
 * @param taskSteps the tasks whose steps are shown below them
 */
export function useTree(taskSteps?: TaskSteps): readonly TreeEntry[] {
  const { store, steps, context } = useDashboard()
  const [facts] = useState(() => new RequestReader())
  const { servers, projects, tasks, builds } = store
  const traffic = context.is_admin ? store : null
  const lists = [
    traffic?.requests.open().list.value ?? NONE,
    traffic?.events.open().list.value ?? NONE,
    traffic?.deliveries.open().list.value ?? NONE,
    servers.open().list.value,
    projects.open().list.value,
    tasks.open().list.value,
    builds.open().list.value,
    steps.list.value,
  ] as const
  const transcripts = new Map([...(taskSteps?.ids ?? [])].map((id) => [id, taskSteps?.of(id)?.value ?? NONE]))
  return useMemo(() => {
    const [requests, events, deliveries, ...rest] = lists
    const [allServers, allProjects, allTasks, allBuilds, allSteps] = rest
    return growTree({
      requests,
      events,
      deliveries,
      servers: allServers,
      projects: allProjects,
      tasks: allTasks,
      builds: allBuilds,
      steps: allSteps,
      transcripts,
      facts,
      accountId: context.account.id,
    })
  }, [...lists, ...transcripts.values(), transcripts.size])
}

/**
 * Tasks that are followed at a time. Each takes one of the six connections that a browser has to a host.
 * @bound program
 */
const MOST = 2

/** What an agent does for the tasks that a person has opened in the timeline. */
export class TaskSteps {
  readonly #open = signal<ReadonlyMap<string, { transcript: TaskTranscript; close: () => void }>>(new Map())
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
      const transcript = new TaskTranscript()
      // What cannot be read now is tried again.
      const close = followTranscript(this.#api, { id, serverId }, transcript, () => {})
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
