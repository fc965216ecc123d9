import { Elysia, t } from 'elysia'
import { ScenarioText } from '../../agents/scripted/model.ts'
import { operation } from '../../contract/operation.ts'
import { Task } from '../../resources/tasks/model.ts'
import type { ControlParts } from './parts.ts'

/** A scenario that repeats a task. */
const RecordedScenario = t.Object(
  {
    scenario: ScenarioText,
    notes: t.Array(t.String(), { description: 'Sentences on what it cannot repeat.' }),
  },
  { $id: 'RecordedScenario' },
)

/** Serves `/_berth/tasks`: the release of tasks that hold, and tasks as scenarios. */
export const controlTasksRoutes = ({ access, services: { tasks } }: ControlParts) =>
  new Elysia({ prefix: '/_berth/tasks' })
    .use(access)
    .get(
      '/:taskId/scenario',
      async ({ params }) => {
        const { goal, events } = (await tasks()).record(params.taskId)
        const { recordScenario } = await import('./recorded-scenario.ts')
        return recordScenario(goal, events)
      },
      operation('control.tasks.scenario', {
        access: 'admin',
        summary: 'Make a scenario of what a task did',
        description:
          'Its commands with their exit codes, the files that it wrote and read, its messages, questions and result, as a scenario for the same goal. Nothing is set: look at it, and set it with `control.scenarios.replace`.',
        success: { 200: RecordedScenario },
        errors: [404],
      }),
    )
    .post(
      '/:taskId/release',
      async ({ params }) => ({ task: (await tasks()).release(params.taskId) }),
      operation('control.tasks.release', {
        access: 'admin',
        summary: "Let a task go on that waits in a scenario's step `hold`",
        description: 'A task that does not wait is refused.',
        success: { 200: t.Object({ task: Task }) },
        errors: [400, 404],
      }),
    )
