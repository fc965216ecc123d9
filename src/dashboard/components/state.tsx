/** The look of a state: what goes well, is under way, waits for a person, rests or has failed. */
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
