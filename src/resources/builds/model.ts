import { type Static, t } from 'elysia'
import { NOT_BLANK, oneOf, text } from '../../contract/schema.ts'
import { STEP_KEYS } from './steps.ts'

/** Status of a build. A failed build is completed and has no URL. */
export const BuildStatus = oneOf(['queued', 'running', 'completed'], {
  $id: 'BuildStatus',
  description: 'A build that failed is completed, with `url` null; its log tells why.',
})
export type BuildStatus = Static<typeof BuildStatus>

/** Status of a phase. */
export const StepStatus = oneOf(['pending', 'running', 'done'], { $id: 'BuildStepStatus' })
export type StepStatus = Static<typeof StepStatus>

/** One phase of a build. */
export const BuildStep = t.Object(
  {
    key: oneOf([...STEP_KEYS], { $id: 'BuildPhase' }),
    label: t.String({ description: 'What it does, for a person.' }),
    status: StepStatus,
    skipped: t.Optional(
      t.Boolean({
        description: 'True for `implement` if no agent is configured that could, so that nothing was done.',
      }),
    ),
    beganAt: t.Optional(t.String({ format: 'date-time' })),
    endedAt: t.Optional(
      t.String({ format: 'date-time', description: 'Of a phase that is `pending` again: when it failed.' }),
    ),
  },
  { $id: 'BuildStep', additionalProperties: true },
)
export type BuildStep = Static<typeof BuildStep>

/** A goal that becomes an app with a URL, phase by phase. */
export const Build = t.Object(
  {
    id: t.String(),
    serverId: t.String(),
    goal: t.String(),
    status: BuildStatus,
    steps: t.Array(BuildStep),
    artifacts: t.Array(t.String(), {
      description: 'Workspace paths of the files that it made or changed, sorted; packages left out.',
    }),
    url: t.Nullable(t.String(), { description: 'Where the app answers; null until then, and on failure.' }),
    createdAt: t.String({ format: 'date-time' }),
  },
  { $id: 'Build', additionalProperties: false },
)
export type Build = Static<typeof Build>

/** The response to a build's creation. */
export const CreatedBuild = t.Object(
  { build_id: t.String(), status: BuildStatus, steps: t.Array(BuildStep) },
  { $id: 'CreatedBuild', additionalProperties: true },
)
export type CreatedBuild = Static<typeof CreatedBuild>

/** Most characters of a goal. @bound client */
const MAX_GOAL = 100_000

/** What is to be built. */
export const BuildCreate = t.Object(
  {
    goal: text({
      minLength: 1,
      maxLength: MAX_GOAL,
      pattern: NOT_BLANK,
      description: 'What is to be built, in plain words.',
    }),
  },
  { $id: 'BuildCreate', additionalProperties: true, examples: [{ goal: 'A landing page for a bakery' }] },
)
export type BuildCreate = Static<typeof BuildCreate>
