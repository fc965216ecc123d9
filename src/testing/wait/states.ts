import { badRequest } from '../../errors.ts'
import type { BuildStatus } from '../../resources/builds/model.ts'
import type { InitPhase, RuntimeStatus } from '../../resources/projects/model.ts'
import type { TaskStatus } from '../../resources/tasks/model.ts'
import { DELIVERY_STATUSES } from '../../resources/webhooks/model.ts'

/** The states of a kind of thing. */
interface States<State extends string = string> {
  readonly all: readonly State[]
  /** Those in which it goes no further by itself: what is waited for where nothing is said. */
  readonly ends: readonly State[]
}

const states = <const State extends string>(all: readonly State[], ends: readonly NoInfer<State>[]) => ({
  all,
  ends,
})

/** The states that can be waited for, by what has them. */
export const STATES = {
  /** `held` is that of a running one whose scenario waits for its release. */
  task: states<TaskStatus | 'held'>(
    ['running', 'held', 'awaiting_input', 'completed', 'failed', 'cancelled'],
    ['completed', 'failed', 'cancelled', 'awaiting_input'],
  ),
  build: states<BuildStatus>(['queued', 'running', 'completed'], ['completed']),
  /** Of its bring-up, and of its app. */
  project: states<InitPhase | RuntimeStatus>(
    [
      'fetch',
      'install',
      'build',
      'awaiting_secrets',
      'start',
      'healthcheck',
      'ready',
      'failed',
      'unbuilt',
      'running',
      'paused',
    ],
    ['ready', 'failed', 'awaiting_secrets'],
  ),
  delivery: states(DELIVERY_STATUSES, ['delivered', 'failed']),
} satisfies Record<string, States>

/** What has states that can be waited for. */
export type Kind = keyof typeof STATES

/**
 * The states that `until` names.
 *
 * @param given names with commas between them
 * @throws BerthError 400 for one that the kind does not have
 */
export function readUntil(kind: Kind, given: string | undefined): ReadonlySet<string> {
  const { all, ends }: States = STATES[kind]
  if (given === undefined) return new Set(ends)
  const names = given.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !all.includes(name))
  if (unknown === undefined) return new Set(names)
  throw badRequest(
    `"until" in the query: a ${kind} has no state ${JSON.stringify(unknown)}, only ${all.join(', ')}; several with commas between them.`,
  )
}
