import { Elysia, status } from 'elysia'
import { envelope } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { badRequest } from '../../errors.ts'
import { streamInstead } from '../../http/accept.ts'
import type { AccessControl } from '../../http/authentication.ts'
import type { ByteStreamRun } from '../../http/byte-stream.ts'
import type { Caller } from '../../http/caller.ts'
import { EVENT_STREAM_TYPE, type StreamRun } from '../../http/sse.ts'
import type { WaitEnds } from '../../http/wait-ends.ts'
import type { ExecutionsService } from './executions.ts'
import { FRAMES_TYPE } from './frames.ts'
import type { Leave, Leaves } from './leave.ts'
import { ExecEvent, ExecRequest, ExecResult, ExecStreamQuery, Execution } from './model.ts'
import { EventOutput, FrameOutput, PlainOutput } from './output.ts'
import type { ExecService, ExecWish } from './service.ts'

/** The media type of standard output alone. */
const BYTES_TYPE = 'application/octet-stream'

const EVENTS =
  'Events `stdout` and `stderr`, each with `{"data": TEXT}` or, where the bytes are not UTF-8, `{"data": BASE64, "encoding": "base64"}`; at the end `exit` with `{"exitCode", "timedOut", "truncated", "refused"}` as in the result, or `error` with the body of a failure.'

const OTHER_FORMS = `With \`Accept: ${BYTES_TYPE}\` the response is standard output unchanged, and breaks off if the command fails; with \`${FRAMES_TYPE}\` it is frames: a byte for the kind (1 stdout, 2 stderr, 3 exit, 4 error), four for the length (big-endian), and as many bytes, which are JSON for exit and error.`

/** What a response to a command needs of its request. */
interface ExecContext {
  readonly caller: Caller
  readonly params: { readonly serverId: string }
  readonly request: Request
  readonly stream: (run: StreamRun) => Response
  readonly streamBytes: (type: string, run: ByteStreamRun) => Response
}

/** Serves `/servers/{serverId}/exec`: run a shell command. */
export const execRoutes = (
  access: AccessControl,
  exec: ExecService,
  executions: () => Promise<ExecutionsService>,
  leaves: Leaves,
) =>
  new Elysia({ prefix: '/servers/:serverId/exec' })
    .use(access)
    .post(
      '',
      ({ caller, params, body, request, stream, streamBytes, whileValid }) => {
        const leave = leaves.of(request)
        if (body.detach === true || leave !== undefined)
          return respondEarly(executions, { caller, params, request, whileValid }, body, leave)
        if (body.openStdin !== undefined)
          throw badRequest('"openStdin" in the body goes with "detach": true. Leave it out, or detach.')
        return respond(exec, { caller, params, request, stream, streamBytes }, body)
      },
      operation(
        'exec.run',
        {
          access: 'resource',
          summary: 'Run a shell command',
          description: `Runs the command by \`sh -c\` and responds when it ends. A command that fails also gets 200; \`exitCode\` says how it ended. A sleeping server is woken. With \`Accept: text/event-stream\` the output is streamed; closing the connection ends the command. ${OTHER_FORMS} With \`detach\` the response is 202 with an execution, whose output can be read as long as it is kept.`,
          events: EVENTS,
          event: ExecEvent,
          byteStreams: [BYTES_TYPE, FRAMES_TYPE],
          success: {
            200: ExecResult,
            202: envelope('execution', Execution),
          },
          errors: [400, 401, 402, 403, 404, 502],
        },
        { body: ExecRequest },
      ),
    )
    .post(
      '/stream',
      ({ caller, params, query, request, stream, streamBytes }): Promise<ExecResult> | Promise<Response> => {
        for (const name of ['detach', 'openStdin'] as const) {
          if (name in query)
            throw badRequest(
              `"${name}" in the query: here the request's body is the standard input. Use POST /servers/{serverId}/exec.`,
            )
        }
        return respond(
          exec,
          { caller, params, request, stream, streamBytes },
          {
            command: query.command,
            ...(query.cwd === undefined ? {} : { cwd: query.cwd }),
            timeoutMs: query.timeoutMs ?? null,
            stdin: request.body ?? new Blob().stream(),
          },
        )
      },
      operation(
        'exec.stream',
        {
          access: 'resource',
          summary: 'Run a shell command with a stream for its input',
          description: `Runs a command as \`POST /servers/{serverId}/exec\` does. The request's body is its standard input, of any length and as it comes: the command reads while the body is still sent, and its output is sent meanwhile in every form but JSON. If the command does not read, the client has to wait. The response ends when the command does, read or not. Without \`timeoutMs\` it may run as long as the connection stands. ${OTHER_FORMS}`,
          takes: { type: BYTES_TYPE, description: 'Standard input.' },
          events: EVENTS,
          event: ExecEvent,
          byteStreams: [BYTES_TYPE, FRAMES_TYPE],
          success: { 200: ExecResult },
          errors: [400, 401, 402, 404, 502],
        },
        { query: ExecStreamQuery },
      ),
    )

/**
 * Responds before the command ends: at once for one that detaches, else when its client may wait no longer.
 *
 * @throws BerthError 400 if the client wants a stream, which would last as long as the command
 */
async function respondEarly(
  executions: () => Promise<ExecutionsService>,
  {
    caller,
    params: { serverId },
    request: { headers, signal },
    whileValid,
  }: Pick<ExecContext, 'caller' | 'params' | 'request'> & Pick<WaitEnds, 'whileValid'>,
  body: ExecRequest,
  leave: Leave | undefined,
) {
  if (streamTypeOf(headers.get('accept')) !== null)
    throw badRequest(
      'With "detach" in the body the response is JSON: accept application/json, and read the output by GET /servers/{serverId}/executions/{executionId}/output.',
    )
  const service = await executions()
  if (body.detach === true || leave === undefined)
    return status(202, { execution: await service.create(caller, serverId, body) })
  const result = await service.leave(caller, serverId, body, { signal, whileValid }, leave)
  const { exitCode, executionId = '' } = result
  return exitCode === undefined
    ? status(202, { ...result, execution: service.get(caller, serverId, executionId) })
    : { ...result, exitCode }
}

/** Runs a command, and responds in the form that the client accepts. */
function respond(
  exec: ExecService,
  { caller, params: { serverId }, request, stream, streamBytes }: ExecContext,
  wish: ExecWish,
): Promise<ExecResult> | Promise<Response> {
  const type = streamTypeOf(request.headers.get('accept'))
  if (type === null) return exec.run(caller, serverId, wish, request.signal)
  return exec.check(caller, serverId, wish).then<Response>(() => {
    if (type === EVENT_STREAM_TYPE)
      return stream((send, gone) => exec.stream(caller, serverId, wish, gone, new EventOutput(send)))
    return streamBytes(type, (send, gone) => {
      const output = type === FRAMES_TYPE ? new FrameOutput(send) : new PlainOutput(send)
      return exec.stream(caller, serverId, wish, gone, output)
    })
  })
}

/** Returns the media type of the stream that a client wants in place of JSON; null if it wants none. */
const streamTypeOf = (accept: string | null): string | null =>
  streamInstead(accept, [EVENT_STREAM_TYPE, BYTES_TYPE, FRAMES_TYPE])
