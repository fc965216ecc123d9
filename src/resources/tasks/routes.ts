import { Elysia, status, t } from 'elysia'
import { envelope, listOf, SettleQuery } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { afterGap, resumedStart, wantsEventStream } from '../../http/sse.ts'
import { readSettled, type SettleSources } from '../../http/wait-ends.ts'
import {
  CreatedTask,
  Task,
  TaskCreate,
  TaskEvent,
  TaskEventsQuery,
  TaskInput,
  TaskStreamEvent,
} from './model.ts'
import type { TasksService } from './service.ts'

/** The response with a task's transcript. */
const Transcript = t.Object({ events: t.Array(TaskEvent) }, { $id: 'Transcript', additionalProperties: true })
type Transcript = typeof Transcript.static

/** `/tasks` and `/servers/{serverId}/tasks`. The service is loaded when it is first asked for. */
export const tasksRoutes = (
  access: AccessControl,
  tasks: () => Promise<TasksService>,
  sources: SettleSources,
) =>
  new Elysia()
    .use(access)
    .get(
      '/tasks',
      async ({ caller }) => ({ tasks: (await tasks()).listAll(caller) }),
      operation('tasks.listAll', {
        access: 'resource',
        summary: 'List all tasks',
        description: 'The tasks of all servers that the key reaches, newest first, ended ones included.',
        success: { 200: listOf('tasks', Task) },
        errors: [401],
      }),
    )
    .use(serverTasksRoutes(access, tasks, sources))

const serverTasksRoutes = (
  access: AccessControl,
  tasks: () => Promise<TasksService>,
  sources: SettleSources,
) =>
  new Elysia({ prefix: '/servers/:serverId/tasks' })
    .use(access)
    .get(
      '',
      async ({ caller, params }) => ({ tasks: (await tasks()).list(caller, params.serverId) }),
      operation('tasks.list', {
        access: 'resource',
        summary: "List a server's tasks",
        description: 'Newest first, ended tasks included.',
        success: { 200: listOf('tasks', Task) },
        errors: [401, 404],
      }),
    )
    .post(
      '',
      async ({ caller, params, body }) =>
        status(201, await (await tasks()).create(caller, params.serverId, body.goal)),
      operation(
        'tasks.create',
        {
          access: 'resource',
          summary: 'Give the agent a goal',
          description:
            'The agent begins at once; a sleeping server is woken. A server runs several tasks at a time. The response does not wait for the task: follow its events, or ask for it again.',
          success: { 201: CreatedTask },
          errors: [400, 401, 402, 404],
        },
        { body: TaskCreate },
      ),
    )
    .get(
      '/:taskId',
      async ({ caller, params, query, request, whileValid }) => {
        const service = await tasks()
        const read = () => service.get(caller, params.serverId, params.taskId)
        const isSettled = ({ status }: Task) => status !== 'running'
        return { task: await readSettled(read, isSettled, sources, { request, query, whileValid }) }
      },
      operation(
        'tasks.get',
        {
          access: 'resource',
          summary: 'Get a task',
          description:
            'Its status, its result once it has ended, and its question while it waits for an answer. With `wait_ms` the response waits until the task has ended or asks.',
          success: { 200: envelope('task', Task) },
          errors: [400, 401, 404],
        },
        { query: SettleQuery },
      ),
    )
    .post(
      '/:taskId/input',
      async ({ caller, params, body }) => ({
        task: (await tasks()).answer(caller, params.serverId, params.taskId, body.answer),
      }),
      operation(
        'tasks.answer',
        {
          access: 'resource',
          summary: "Answer a task's question",
          description:
            'The task continues with the answer. A task whose status is not `awaiting_input` is refused.',
          success: { 200: envelope('task', Task) },
          errors: [400, 401, 404],
        },
        { body: TaskInput },
      ),
    )
    .post(
      '/:taskId/cancel',
      async ({ caller, params }) => ({
        task: await (await tasks()).cancel(caller, params.serverId, params.taskId),
      }),
      operation('tasks.cancel', {
        access: 'resource',
        summary: 'Cancel a task',
        description:
          'Ends the commands of the agent. Files that it has changed stay as they are. A task that is completed or failed is refused.',
        success: { 200: envelope('task', Task) },
        errors: [400, 401, 404],
      }),
    )
    .get(
      '/:taskId/events',
      ({ caller, params, query, request, stream }): Promise<Transcript> | Promise<Response> => {
        const { serverId, taskId } = params
        const { headers } = request
        if (!wantsEventStream(headers.get('accept'))) {
          return tasks().then<Transcript>((service) => ({
            events: service.listEvents(caller, serverId, taskId, query.after ?? 0),
          }))
        }
        return tasks().then<Response>(async (service) => {
          service.getRow(caller, serverId, taskId)
          const resumed = await resumedStart(request, (id) => service.findEvent(taskId, Number(id)))
          const start = resumed ?? { from: 0, hasGap: false }
          const after = Math.max(start.from, query.after ?? 0)
          return stream(afterGap(start, (send, gone) => service.follow(taskId, after, gone, send)))
        })
      },
      operation(
        'tasks.events',
        {
          access: 'resource',
          summary: "Read a task's transcript",
          description:
            'What the agent did and said, oldest first; values of secrets are masked. Each event has `seq`, `at` and a `type`: `status` (`status`, `result`), `message` (`text`), `toolCall` (`call`, `tool`, `input`), `toolResult` (`call`, `tool`, `ok`, `output`), `terminal` (`text`), `question`, `answer`, `usage` (`inputTokens`, `outputTokens`, `cost`), `notice` (`text`).',
          events:
            'The events of the transcript, each under its type; while the task runs those that come. Besides, without id, `output` (`call`, `stream`, `offset`, `text`) and `text` (`offset`, `text`): what is printed and said, piece by piece, before the event that tells it whole; `offset` counts the characters before. The stream ends with the task.',
          event: TaskStreamEvent,
          resumable: true,
          success: { 200: Transcript },
          errors: [400, 401, 404],
        },
        { query: TaskEventsQuery },
      ),
    )
