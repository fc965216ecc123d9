import { ExitState, State } from '../../components/state.tsx'
import { span } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Execution } from '../../store/store.ts'

/** How an execution ended, or that it runs. */
export function ExecutionState({ of: { status, exitCode, timedOut } }: { of: Execution }) {
  if (status === 'running') return <State of="running" look="active" />
  if (status === 'ended' && !timedOut) return <State of="ended" look="resting" />
  return <ExitState exitCode={exitCode} timedOut={timedOut} />
}

/** How long an execution took, or has been running, by berth's clock. */
export function Took({ of: { startedAt, endedAt } }: { of: Execution }) {
  const { clock } = useDashboard()
  const end = endedAt === null ? clock.now.value : Date.parse(endedAt)
  return <>{span(Math.max(0, end - Date.parse(startedAt)))}</>
}
