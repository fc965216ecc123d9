import { Elysia, t } from 'elysia'
import { operation } from '../../contract/operation.ts'
import { Task } from '../../resources/tasks/model.ts'
import type { TasksService } from '../../resources/tasks/service.ts'
import type { ControlAccess } from './control-access.ts'

/** Serves `/_berth/tasks`: the release of tasks that hold. */
export const controlTasksRoutes = (access: ControlAccess, tasks: () => Promise<TasksService>) =>
  new Elysia({ prefix: '/_berth/tasks' }).use(access).post(
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
