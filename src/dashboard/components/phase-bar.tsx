import { useDashboard } from '../dashboard.ts'
import { span } from './time.tsx'

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

/** Says how long a phase took, takes so far, or what else is known of it. */
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
