import { badRequest } from '../../errors.ts'
import { BuildStatus } from '../../resources/builds/model.ts'
import { EXECUTION_STATUSES } from '../../resources/exec/model.ts'
import {
  INIT_PHASES,
  type InitPhase,
  RUNTIME_STATUSES,
  type RuntimeStatus,
} from '../../resources/projects/model.ts'
import type { TaskStatus } from '../../resources/tasks/model.ts'
import { DELIVERY_STATUSES } from '../../resources/webhooks/model.ts'

/** The states of a subject. */
interface SubjectStates<State extends string = string> {
  readonly all: readonly State[]
  /** Final states, and those that need the client. The default of `until`. */
  readonly finals: readonly State[]
}

const states = <const State extends string>(all: readonly State[], finals: readonly NoInfer<State>[]) => ({
  all,
  finals,
})

/** The states that can be waited for, by subject. */
const STATES = {
  /** A task is `held` if it runs and its scenario waits for its release. */
  task: states<TaskStatus | 'held'>(
    ['running', 'held', 'awaiting_input', 'completed', 'failed', 'cancelled'],
    ['completed', 'failed', 'cancelled', 'awaiting_input'],
  ),
  build: states(BuildStatus.enum, ['completed']),
  /** The phases of its bring-up and the states of its app. */
  project: states<InitPhase | RuntimeStatus>(
    [...INIT_PHASES, ...RUNTIME_STATUSES],
    ['ready', 'failed', 'awaiting_secrets'],
  ),
  execution: states(EXECUTION_STATUSES, ['exited', 'ended']),
  delivery: states(DELIVERY_STATUSES, ['delivered', 'failed', 'disabled']),
} satisfies Record<string, SubjectStates>

const ANY_STATE = `\\s*(?:${[...new Set(Object.values(STATES).flatMap(({ all }) => [...all]))].join('|')})\\s*`

/** Matches `until`, with states of whatever subject. */
export const STATES_PATTERN = `^${ANY_STATE}(?:,${ANY_STATE})*$`

/** What `until` is, in words that follow "expected". */
export const STATES_WORDS = `states with commas between them (${Object.entries(STATES)
  .map(([subject, { all }]) => `${subject}: ${all.join(', ')}`)
  .join('; ')})`

/** A subject with states. */
type WaitSubject = keyof typeof STATES

/**
 * Returns the states that `until` names.
 *
 * @param given names, separated by commas
 * @throws BerthError 400 for a state that only other kinds have
 */
export function readUntil(kind: WaitSubject, given: string | undefined): ReadonlySet<string> {
  const { all, finals }: SubjectStates = STATES[kind]
  if (given === undefined) return new Set(finals)
  const names = given.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !all.includes(name))
  if (unknown === undefined) return new Set(names)
  throw badRequest(
    `"until" in the query: a ${kind} has no state ${JSON.stringify(unknown)}, only ${all.join(', ')}; several with commas between them.`,
  )
}
