import { State } from '../../components/state.tsx'
import type { Project } from '../../store/store.ts'

/** The phases in which the state of the app says more than the phase: nothing is brought up. */
const SHOWN_BY_APP: ReadonlySet<string | null> = new Set([null, 'ready'])

/** The state of a project in a word: the phase of its bring-up while there is one, a crash, else whether its app runs. */
export function ProjectState({ project }: { project: Project }) {
  const { runtime_status: runtime, init_phase: phase, crash } = project
  if (crash) return <State of="crashed" />
  // The version before runs, as after a change that did not come up.
  if (phase === 'failed' && runtime === 'running') return <State of="running" />
  return <State of={SHOWN_BY_APP.has(phase) ? runtime : (phase ?? runtime)} />
}
