import { type Static, t } from 'elysia'
import { PROCESS_SIGNALS, PROCESS_STATES } from '../../compute/sandbox.ts'
import { integer, oneOf, used } from '../../contract/schema.ts'

/** What started a process. */
const ProcessOwner = t.Object(
  {
    kind: oneOf(['exec', 'terminal', 'task', 'build', 'project', 'deployment'], { $id: 'ProcessOwnerKind' }),
    id: t.Nullable(t.String(), {
      description:
        'Id of the execution, terminal, task, build or project; null for another command and for the deployment.',
    }),
  },
  { $id: 'ProcessOwner', additionalProperties: true },
)

/** A process of a server. */
export const ServerProcess = t.Object(
  {
    pid: integer({ description: 'Its number inside the server.' }),
    parent_pid: integer(),
    command: t.String({ description: 'Its command line, cut after 2,000 characters.' }),
    state: oneOf([...PROCESS_STATES], { $id: 'ProcessState' }),
    cpu_percent: t.Number({ description: 'Use of processors lately; 100 is one whole processor.' }),
    memory_bytes: integer({ description: 'Memory in use (resident set size).' }),
    started_at: t.String({ format: 'date-time' }),
    ports: t.Array(integer(), { description: 'TCP ports that it listens on.' }),
    belongs_to: t.Nullable(ProcessOwner, { description: 'What started it; null if that is not known.' }),
  },
  { $id: 'ServerProcess', additionalProperties: true },
)
export type ServerProcess = Static<typeof ServerProcess>

/** A signal. */
const Signal = oneOf([...PROCESS_SIGNALS], { $id: 'Signal' })

/** The signal to send. */
export const SignalQuery = t.Object(
  { signal: t.Optional(used(Signal, 'TERM by default.')) },
  { additionalProperties: true },
)
export type SignalQuery = Static<typeof SignalQuery>

/** What became of a process that was sent a signal. */
export const SignalResult = t.Object(
  {
    pid: integer(),
    signal: Signal,
    ended: t.Boolean({ description: 'Whether it has ended within a second.' }),
  },
  { $id: 'SignalResult', additionalProperties: true },
)
export type SignalResult = Static<typeof SignalResult>
