import { type Phase, PhaseBar } from '../../components/phase-bar.tsx'
import { span } from '../../components/time.tsx'
import type { Project } from '../../store/store.ts'

/** The phases of a bring-up that everybody passes, in order. */
const PHASES = ['fetch', 'install', 'build', 'start', 'healthcheck'] as const

/** What a phase does. */
const TITLES: Readonly<Record<string, string>> = {
  fetch: 'Gets the code',
  install: 'Finds out how the app starts, and installs its packages',
  build: 'Builds the app',
  variables: 'Waits for variables that the app does not start without',
  start: 'Starts the app',
  healthcheck: 'Asks the app until it responds',
}

/** That a phase failed. */
const FAILURES: Readonly<Record<string, string>> = {
  fetch: 'The code could not be fetched',
  install: 'The installation failed',
  build: 'The build failed',
  start: 'The app could not be started',
  healthcheck: 'The app did not respond',
}

type Entry = NonNullable<Project['init_phases']>[number]

/** How far the last bring-up of a project is, how long each of its phases took, and which one failed. */
export function Phases({ project }: { project: Project }) {
  const { init_phase: now, init_phases: entries = [], app } = project
  if (now === null) return null
  const phases = phasesOf(entries, now, app?.build === null)
  const [first] = entries
  const last = entries.at(-1)
  const cameUpLater = entries.some(({ phase }) => phase === 'failed')
  const failed = phases.find(({ state }) => state === 'failed')
  return (
    <section class="bring-up" aria-label="Bring-up">
      <PhaseBar label="Phases of the bring-up" phases={phases} />
      {first && last && now === 'ready' && (
        <p class="quiet">
          {cameUpLater
            ? 'It failed at first, and came up after a later change.'
            : `Ready after ${span(Date.parse(last.began_at) - Date.parse(first.began_at))}.`}
        </p>
      )}
      {now === 'failed' && (
        <p class="failed-in">
          {failed ? FAILURES[failed.name] : 'It failed'}: the log says why.
          {project.runtime_status === 'running' && ' The version before runs.'}
        </p>
      )}
    </section>
  )
}

/** Returns the phases of a bring-up with their states and times. */
function phasesOf(entries: readonly Entry[], now: string, hasNoBuild: boolean): Phase[] {
  const waited = entries.some(({ phase }) => phase === 'awaiting_secrets')
  const names: readonly string[] = waited
    ? PHASES.flatMap((name) => (name === (hasNoBuild ? 'start' : 'build') ? ['variables', name] : [name]))
    : PHASES
  const seen = new Map<string, { begin: number | null; end: number | null }>()
  for (const [index, { phase, began_at: begin }] of entries.entries()) {
    const name = phase === 'awaiting_secrets' ? 'variables' : phase
    const next = entries[index + 1]
    // How long an attempt took that failed is not how long the app took that is up now.
    const isOver = next?.phase === 'failed' && now === 'ready'
    seen.set(name, {
      begin: isOver ? null : Date.parse(begin),
      end: next ? Date.parse(next.began_at) : null,
    })
  }
  const open = now === 'awaiting_secrets' ? 'variables' : now
  const failed = now === 'failed' ? nameOf(entries.at(-2)) : null
  const at = Math.max(...names.map((name, index) => (seen.has(name) ? index : -1)))
  return names.map((name, index) => {
    const times = seen.get(name)
    const common = { name, title: TITLES[name] ?? name, begin: times?.begin ?? null, end: times?.end ?? null }
    if (name === failed) return { ...common, state: 'failed' }
    if (name === open) return { ...common, state: name === 'variables' ? 'waiting' : 'current' }
    if (name === 'build' && hasNoBuild) return { ...common, state: 'skipped' }
    if (times) return { ...common, state: 'done' }
    return { ...common, state: index < at || now === 'ready' ? 'skipped' : 'pending' }
  })
}

const nameOf = (entry: Entry | undefined): string | null =>
  entry ? (entry.phase === 'awaiting_secrets' ? 'variables' : entry.phase) : null
