import type { Project } from '../../store/store.ts'

/** The phases of a bring-up that everybody passes, in order. */
const PHASES = ['fetch', 'install', 'build', 'start', 'healthcheck', 'ready'] as const

/** How far the bring-up of a project is, as a row of its phases. */
export function Phases({ project }: { project: Project }) {
  const { init_phase: phase } = project
  if (phase === null || phase === 'ready') return null
  const at = PHASES.findIndex((one) => one === (phase === 'awaiting_secrets' ? 'start' : phase))
  return (
    <ol class="phases" aria-label="Phases of the bring-up">
      {PHASES.map((one, index) => (
        <li
          key={one}
          class={phase === 'failed' ? '' : index < at ? 'done' : index === at ? 'current' : ''}
          aria-current={index === at ? 'step' : undefined}
        >
          {one}
        </li>
      ))}
      {phase === 'failed' && <li class="failed">failed: the log says why</li>}
      {phase === 'awaiting_secrets' && <li class="current">waits for variables</li>}
    </ol>
  )
}
