import { type ReadonlySignal, signal } from '@preact/signals'
import type { ChangeStream, LiveChange } from '../api/changes.ts'
import type { Build, Execution, Project, Server, Task, Terminal } from './store.ts'

/** The types of objects whose states are followed. */
export const FOLLOWED = ['server', 'project', 'task', 'build', 'execution', 'terminal', 'deployment'] as const

/** The type of an object whose states are followed. */
export type FollowedType = (typeof FOLLOWED)[number]

/** Types whose end is a step of its own. */
const LASTING: readonly FollowedType[] = ['server', 'project', 'deployment']

/** A state that an object entered while the page was open. */
export interface ObjectStep {
  readonly type: FollowedType
  /** The id of the object. */
  readonly id: string
  readonly serverId: string | null
  readonly state: string
  /** When it was seen, in milliseconds since 1970 by berth's clock. */
  readonly at: number
  /** The object as it was then; of one that is gone, as it was before, null if that is not known. */
  readonly value: unknown
}

/** Most steps that are kept; the oldest are dropped. @bound program */
const MOST = 2_000

/** Records each state that servers, projects, tasks, builds, executions, terminals and deployments enter. */
export class Steps {
  readonly #list = signal<readonly ObjectStep[]>([])
  readonly #states = new Map<string, string>()

  /** All steps, the oldest first. */
  get list(): ReadonlySignal<readonly ObjectStep[]> {
    return this.#list
  }

  /**
   * Follows the stream of changes.
   *
   * @param now berth's time
   * @param before returns an object as it was known before a change; undefined if it was not
   */
  follow(changes: ChangeStream, now: () => number, before: (change: LiveChange) => unknown): void {
    for (const type of FOLLOWED)
      changes.subscribe(type, (change) => {
        const key = `${type} ${change.id}`
        const known = before(change)
        const state = stateOf(type, change.value)
        const last = this.#states.get(key) ?? (known === undefined ? undefined : stateOf(type, known))
        this.#states.set(key, state)
        // Objects on a server, or of a task, are deleted with it.
        const isGone = change.value === null
        if (state === last || (isGone && !LASTING.includes(type))) return
        const serverId = type === 'server' || type === 'deployment' ? change.id : (change.server_id ?? null)
        const step = { type, id: change.id, serverId, state, at: now(), value: change.value ?? known ?? null }
        this.#list.value = [...this.#list.peek().slice(1 - MOST), step]
      })
  }
}

/** Returns the state of an object in a word or two: `awaiting_input`, `install`, `exited with 1`. */
export function stateOf(type: FollowedType, value: unknown): string {
  if (value === null) return type === 'deployment' ? 'removed' : 'deleted'
  switch (type) {
    case 'server':
      return (value as Server).status
    case 'task':
      return (value as Task).status
    case 'project': {
      const { init_phase: phase, runtime_status: runtime } = value as Project
      return phase === null || phase === 'ready' ? runtime : phase
    }
    case 'build': {
      const { status, steps, url } = value as Build
      if (status === 'completed') return url === null ? 'failed' : 'completed'
      return steps.find((step) => step.status === 'running')?.key ?? status
    }
    case 'terminal': {
      const { exit_code: code } = value as Terminal
      return code === null ? 'running' : `exited with ${code}`
    }
    case 'execution': {
      const { status, exitCode } = value as Execution
      return status === 'exited' ? `exited with ${exitCode}` : status
    }
    case 'deployment':
      return (value as { live: boolean }).live ? 'live' : 'sleeping'
  }
}
