import { useDashboard } from '../dashboard.ts'
import { span } from './time.tsx'

/** The look of a state: good, under way, waiting for a person, at rest or failed. */
type Look = 'good' | 'active' | 'waiting' | 'resting' | 'bad'

const LOOKS: Readonly<Record<string, Look>> = {
  running: 'good',
  live: 'good',
  completed: 'good',
  delivered: 'good',
  ready: 'good',
  done: 'good',
  building: 'active',
  active: 'active',
  pending: 'active',
  install: 'active',
  start: 'active',
  fetch: 'active',
  build: 'active',
  healthcheck: 'active',
  awaiting_input: 'waiting',
  awaiting_secrets: 'waiting',
  retrying: 'waiting',
  restarting: 'waiting',
  sleeping: 'resting',
  paused: 'resting',
  unbuilt: 'resting',
  cancelled: 'resting',
  failed: 'bad',
  disabled: 'bad',
  crashed: 'bad',
  exhausted: 'bad',
}

/** How a command ended: by its exit code, or by its time. */
export const ExitState = ({ exitCode, timedOut }: { exitCode: number | null; timedOut: boolean }) =>
  timedOut ? (
    <State of="timed out" look="waiting" />
  ) : (
    <State of={`exit ${exitCode}`} look={exitCode === 0 ? 'good' : 'bad'} />
  )

/** A state in a word, with a dot in its colour. */
export const State = ({ of: state, look }: { of: string; look?: Look | undefined }) => (
  <span class={`state ${look ?? LOOKS[state] ?? 'resting'}`}>{state.replaceAll('_', ' ')}</span>
)

/** A phase of a work that has several, one after the other. */
export interface Phase {
  /** Its name, in a word. */
  readonly name: string
  /** What it does, on hover. */
  readonly title?: string
  /** What is said of it in place of how long it took. */
  readonly word?: string
  readonly state: 'pending' | 'current' | 'waiting' | 'done' | 'failed' | 'skipped'
  /** When it began, in milliseconds; null if it has not, or if that is not known. */
  readonly begin?: number | null
  /** When it ended. */
  readonly end?: number | null
}

/** What is said of a phase without a duration. */
const WORDS: Readonly<Record<Phase['state'], string>> = {
  pending: '',
  current: 'now',
  waiting: 'waits',
  done: 'done',
  failed: 'failed',
  skipped: 'not needed',
}

/** The phases of a work as a bar: which are done, how long they took, and where it is or has failed. */
export const PhaseBar = ({ label, phases }: { label: string; phases: readonly Phase[] }) => (
  <ol class="phases" aria-label={label}>
    {phases.map((phase) => (
      <li
        key={phase.name}
        title={phase.title}
        class={phase.state}
        aria-current={phase.state === 'current' || phase.state === 'waiting' ? 'step' : undefined}
      >
        <span>{phase.name}</span> <Outcome phase={phase} />
      </li>
    ))}
  </ol>
)

/** Says how long a phase took or takes so far, or how it ended. */
function Outcome({ phase: { state, word, begin = null, end = null } }: { phase: Phase }) {
  const { clock } = useDashboard()
  const isOpen = state === 'current' || state === 'waiting'
  if (begin === null || state === 'pending' || state === 'skipped')
    return <small>{word ?? WORDS[state]}</small>
  const until = end ?? (isOpen ? Math.max(clock.now.value, begin) : begin)
  const took = span(until - begin)
  if (state === 'failed') return <small>failed after {took}</small>
  return <small>{isOpen && until - begin < 1_000 ? WORDS[state] : took}</small>
}
