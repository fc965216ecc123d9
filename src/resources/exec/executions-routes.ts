import { Elysia, t } from 'elysia'
import { DeleteResult, envelope, listOf } from '../../contract/model.ts'
import { operation } from '../../contract/operation.ts'
import { BerthError } from '../../errors.ts'
import type { AccessControl } from '../../http/authentication.ts'
import type { Caller } from '../../http/caller.ts'
import { type SendEvent, wantsEventStream } from '../../http/sse.ts'
import { endedCredential, type WaitEnds } from '../../http/wait-ends.ts'
import { utf8Text } from '../../runtime/decode.ts'
import type { ExecutionsService } from './executions.ts'
import type { OutputEntry, OutputGap, PerStream } from './kept-output.ts'
import {
  DEFAULT_ENTRIES,
  Execution,
  ExecutionEvent,
  ExecutionInput,
  ExecutionOutput,
  OutputRange,
} from './model.ts'
import { toExecution } from './table.ts'

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
        { query: OutputRange },
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

/** Milliseconds for which a request waits for more output. */
const FOLLOW_MS = 45_000

/** Most entries that a stream reads at a time. */
const STREAM_ENTRIES = 100

const START: Readonly<PerStream> = { stdout: 0, stderr: 0 }

/** An execution that a caller names. */
interface NamedExecution {
  readonly service: ExecutionsService
  readonly caller: Caller
  readonly serverId: string
  readonly executionId: string
}

/**
 * Returns a page of output; with `follow` as soon as there is any, or the execution has ended, or 45 s are over.
 *
 * @throws BerthError 401, 404
 */
export async function readOutput(
  { service, caller, serverId, executionId }: NamedExecution,
  { after, stream, limit = DEFAULT_ENTRIES, follow }: OutputRange,
  { signal, whileValid }: WaitEnds,
): Promise<ExecutionOutput> {
  const query = { after: positionOf(after) ?? START, stream, limit }
  const look = (): ExecutionOutput => {
    using read = service.open(caller, serverId, executionId)
    const { items, next } = read.output.read(query)
    return {
      output: items.flatMap((item) => ('bytes' in item ? [shownEntry(item)] : [])),
      next: idOf(next),
      dropped: { ...read.output.dropped },
      execution: toExecution(read.row),
    }
  }
  if (follow !== 'true') return look()
  let isInvalid = false
  const over = new AbortController()
  const end = (): void => over.abort()
  const timer = setTimeout(end, FOLLOW_MS)
  const stopWatching = whileValid(() => {
    isInvalid = true
    end()
  })
  signal.addEventListener('abort', end)
  try {
    for (;;) {
      if (isInvalid) throw endedCredential()
      const page = look()
      if (page.output.length > 0 || page.execution.status !== 'running' || over.signal.aborted) return page
      await service.changed(executionId, over.signal)
    }
  } finally {
    clearTimeout(timer)
    stopWatching()
    signal.removeEventListener('abort', end)
  }
}

/**
 * Sends output as events until the execution has ended.
 *
 * @param last the position that a reconnecting client has reached; null if its id is unknown, undefined if it has none
 */
export async function followOutput(
  { service, caller, serverId, executionId }: NamedExecution,
  { after: asked, stream }: OutputRange,
  last: Readonly<PerStream> | null | undefined,
  send: SendEvent,
  gone: AbortSignal,
): Promise<void> {
  let after = last === undefined ? (positionOf(asked) ?? START) : (last ?? START)
  if (last === null) await send('gap', {}, idOf(START))
  try {
    while (!gone.aborted) {
      const page = ((): { items: readonly (OutputEntry | OutputGap)[]; end: object | null } => {
        using read = service.open(caller, serverId, executionId)
        const { items, next } = read.output.read({ after, stream, limit: STREAM_ENTRIES })
        after = next
        const { status, exitCode, timedOut } = read.row
        const { stdout, stderr } = read.output.dropped
        const end = { status, exitCode, timedOut, truncated: stdout + stderr > 0 }
        return { items, end: items.length === 0 && status !== 'running' ? end : null }
      })()
      for (const item of page.items) await sendItem(send, item)
      if (page.end !== null) return void (await send('exit', page.end))
      if (page.items.length === 0) await service.changed(executionId, gone)
    }
  } catch (error) {
    if (!(error instanceof BerthError)) throw error
    await send('error', error.toBody())
  }
}

function sendItem(send: SendEvent, item: OutputEntry | OutputGap): Promise<void> | void {
  const id = idOf(item.position)
  if (!('bytes' in item)) return send('gap', { stream: item.stream, dropped: item.dropped }, id)
  const { data, encoding } = shownEntry(item)
  return send(item.stream, { data, ...(encoding && { encoding }) }, id)
}

function shownEntry({ position, stream, offset, bytes }: OutputEntry): ExecutionOutput['output'][number] {
  const text = utf8Text(bytes)
  const id = idOf(position)
  if (text !== null) return { id, stream, offset, data: text }
  return { id, stream, offset, data: Buffer.from(bytes).toString('base64'), encoding: 'base64' }
}

/** Returns the position of a reconnecting client by its `Last-Event-ID`: null if it is unknown, undefined if it sends none. */
export const lastPosition = (id: string | null): PerStream | null | undefined =>
  id === null || id === '' ? undefined : (positionOf(id) ?? null)

/** Returns a position by its id: the bytes of both streams before it. Null if it is not a position. */
function positionOf(id: string | undefined): PerStream | null {
  const [, stdout, stderr] = /^(\d{1,15})-(\d{1,15})$/.exec(id ?? '') ?? []
  return stdout === undefined || stderr === undefined
    ? null
    : { stdout: Number(stdout), stderr: Number(stderr) }
}

const idOf = ({ stdout, stderr }: Readonly<PerStream>): string => `${stdout}-${stderr}`
