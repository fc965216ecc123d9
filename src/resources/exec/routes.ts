import { Elysia } from 'elysia'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { wantsEventStream } from '../../http/sse.ts'
import { ExecRequest, ExecResult } from './model.ts'
import type { ExecService } from './service.ts'

/** Serves `/servers/{serverId}/exec`: run a shell command. */
export const execRoutes = (access: AccessControl, exec: ExecService) =>
  new Elysia({ prefix: '/servers/:serverId/exec' }).use(access).post(
    '',
    ({ caller, params, body, request, stream }): Promise<ExecResult> | Promise<Response> => {
      if (!wantsEventStream(request.headers.get('accept'))) {
        return exec.run(caller, params.serverId, body, request.signal)
      }
      return exec
        .check(caller, params.serverId, body)
        .then<Response>(() => stream((send, gone) => exec.stream(caller, params.serverId, body, gone, send)))
    },
    operation(
      'exec.run',
      {
        access: 'resource',
        summary: 'Run a shell command',
        description:
          'Runs the command by `sh -c` and responds when it ends. A command that fails also gets 200; `exitCode` says how it ended. A sleeping server is woken. With `Accept: text/event-stream` the output is streamed; closing the connection ends the command.',
        events:
          'Events `stdout` and `stderr`, each with `{"data": TEXT}` or, where the bytes are not UTF-8, `{"data": BASE64, "encoding": "base64"}`; at the end `exit` with `{"exitCode", "timedOut", "truncated", "refused"}` as in the result, or `error` with the body of a failure.',
        success: { 200: ExecResult },
        errors: [400, 401, 402, 404, 502],
      },
      { body: ExecRequest },
    ),
  )
