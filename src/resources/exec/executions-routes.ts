import { Elysia, t } from 'elysia'
import { DeleteResult, envelope, listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { wantsEventStream } from '../../http/sse.ts'
import { followOutput, lastPosition, readOutput } from './execution-output.ts'
import type { ExecutionsService } from './executions.ts'
import { Execution, ExecutionEvent, ExecutionInput, ExecutionOutput, OutputQuery } from './model.ts'

/** The response to a write. */
const WrittenBytes = t.Object({ written: t.Integer({ minimum: 0 }) }, { $id: 'WrittenBytes' })

/** Serves `/servers/{serverId}/executions`. The service is loaded when it is first asked for. */
export const executionsRoutes = (access: AccessControl, executions: () => Promise<ExecutionsService>) =>
  new Elysia({ prefix: '/servers/:serverId/executions' })
    .use(access)
    .get(
      '',
      async ({ caller, params }) => ({ executions: (await executions()).list(caller, params.serverId) }),
      operation('executions.list', {
        access: 'resource',
        summary: "List a server's executions",
        description:
          'Commands that were started with `detach`, newest first. One that has ended is kept for 10 minutes, and 100 of a server are.',
        success: { 200: listOf('executions', Execution) },
        errors: [401, 404],
      }),
    )
    .get(
      '/:executionId',
      async ({ caller, params }) => ({
        execution: (await executions()).get(caller, params.serverId, params.executionId),
      }),
      operation('executions.get', {
        access: 'resource',
        summary: 'Get an execution',
        description: 'Whether it runs, and how it has ended if it has.',
        success: { 200: envelope('execution', Execution) },
        errors: [401, 404],
      }),
    )
    .get(
      '/:executionId/output',
      ({
        caller,
        params,
        query,
        request,
        stream,
        whileValid,
      }): Promise<ExecutionOutput> | Promise<Response> => {
        const { serverId, executionId } = params
        const { headers, signal } = request
        return executions().then<ExecutionOutput | Response>((service) => {
          const of = { service, caller, serverId, executionId }
          if (!wantsEventStream(headers.get('accept'))) return readOutput(of, query, { signal, whileValid })
          service.get(caller, serverId, executionId)
          const last = lastPosition(headers.get('last-event-id'))
          return stream((send, gone) => followOutput(of, query, last, send, gone))
        }) as Promise<ExecutionOutput>
      },
      operation(
        'executions.output',
        {
          access: 'resource',
          summary: "Read an execution's output",
          description:
            'A page of what it has printed, in order; `next` is `after` of the next one. Of each stream the first 64 KiB and the last 1 MiB are kept; `dropped` counts the bytes between them. With `follow` the response waits up to 45 s until there is more, or it has ended.',
          events:
            'Events `stdout` and `stderr` as `exec.run` sends them, each with the position behind it as its id, from which a client that was cut off goes on (`Last-Event-ID`). `gap` with `{"stream", "dropped"}` stands in place of output that is not kept, and without fields before everything where the id is unknown. At the end `exit` with `{"status", "exitCode", "timedOut", "truncated"}`.',
          event: ExecutionEvent,
          success: { 200: ExecutionOutput },
          errors: [400, 401, 404],
        },
        { query: OutputQuery },
      ),
    )
    .post(
      '/:executionId/input',
      async ({ caller, params, body }) => ({
        written: (await executions()).write(caller, params.serverId, params.executionId, body),
      }),
      operation(
        'executions.input',
        {
          access: 'resource',
          summary: "Write to an execution's standard input",
          description:
            'Of one that was started with `openStdin`. It is refused when the input has ended. `written` counts bytes.',
          success: { 200: WrittenBytes },
          errors: [400, 401, 403, 404],
        },
        { body: ExecutionInput },
      ),
    )
    .delete(
      '/:executionId',
      async ({ caller, params }) => {
        await (await executions()).delete(caller, params.serverId, params.executionId)
        return { id: params.executionId, deleted: true as const }
      },
      operation('executions.delete', {
        access: 'resource',
        summary: 'End an execution',
        description:
          'Ends it as a cancelled command is ended, and keeps its record and output. Of one that has ended it removes them.',
        success: { 200: DeleteResult },
        errors: [401, 404],
      }),
    )
