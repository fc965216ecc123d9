import { BerthError } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { SendEvent } from '../../http/sse.ts'
import { endedCredential, type WaitEnds } from '../../http/wait-ends.ts'
import { utf8Text } from '../../runtime/decode.ts'
import type { ExecutionsService } from './executions.ts'
import type { OutputEntry, OutputGap, PerStream } from './kept-output.ts'
import { DEFAULT_ENTRIES, type ExecutionOutput, type OutputQuery } from './model.ts'
import { toExecution } from './table.ts'

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
  { after, stream, limit = DEFAULT_ENTRIES, follow }: OutputQuery,
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
  { after: asked, stream }: OutputQuery,
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
