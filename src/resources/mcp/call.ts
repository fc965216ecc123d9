import type { CallToolResult } from '@modelcontextprotocol/server'
import { BerthError, badRequest } from '../../errors.ts'
import { type ApiAnswer, type ApiRequest, type CallersApi, pathOf, read } from './api.ts'
import { eventsOf, failed, isEventStream } from './events.ts'
import { runTold } from './exec.ts'
import { followed } from './follow.ts'
import type { Progress } from './progress.ts'
import type { OperationTool } from './tool.ts'

/** What a call came with. */
export interface ToolCall {
  readonly operation: OperationTool
  readonly given: Readonly<Record<string, unknown>>
  readonly api: CallersApi
  /** Fires when nobody waits for the result any more. */
  readonly signal: AbortSignal
  /** Where it is told how far it is; null where nobody asked. */
  readonly progress: Progress | null
}

/**
 * Calls an operation: one request to the API, whose answer is the result. A failure is a result too, since a model can
 * do something about it (MCP, "Tools", error handling).
 */
export async function callTool(call: ToolCall): Promise<CallToolResult> {
  try {
    return resultOf(await answerOf(call))
  } catch (error) {
    if (error instanceof BerthError) return resultOf({ status: error.status, body: { ...error.toBody() } })
    throw error
  }
}

function resultOf({ status, body }: ApiAnswer): CallToolResult {
  if (status < 400)
    return { content: [{ type: 'text', text: JSON.stringify(body) }], structuredContent: body }
  return { isError: true, content: [{ type: 'text', text: JSON.stringify({ ...body, status }) }] }
}

async function answerOf({ operation, given, api, signal, progress }: ToolCall): Promise<ApiAnswer> {
  const { follow, request } = requestOf(operation, given, signal)
  if (follow) {
    const refusal = await followToEnd(operation.id, request, api, progress)
    return refusal ?? api.ask(request)
  }
  // What is kept under an idempotency key is a whole answer.
  if (operation.id === 'exec.run' && progress && !api.isRepeatable) return runTold(api, request, progress)
  return api.ask(request)
}

/** Sorts arguments into path, query and body. @throws BerthError 400 */
function requestOf(
  { id, method, path, pathNames, queryNames, takesBody }: OperationTool,
  given: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): { follow: boolean; request: ApiRequest } {
  const query: Record<string, string> = {}
  const fields: Record<string, unknown> = {}
  let follow = false
  for (const [name, value] of Object.entries(given)) {
    if (pathNames.includes(name)) continue
    if (name === 'follow' && followed(id)) {
      if (typeof value !== 'boolean') throw badRequest('"follow": expected true or false.')
      follow = value
    } else if (queryNames.has(name)) {
      if (typeof value === 'object') throw badRequest(`"${name}": expected a single value.`)
      query[name] = String(value)
    } else if (takesBody) {
      fields[name] = value
    } else {
      throw badRequest(`There is no argument "${name}". Leave it out.`)
    }
  }
  const filled = pathOf(path, given)
  return { follow, request: { method, path: filled, query, signal, ...(takesBody ? { body: fields } : {}) } }
}

/**
 * Waits until what an operation's event stream tells of is over, or waits for the caller.
 *
 * @returns a refusal, or what cut it short; null where there was none
 */
async function followToEnd(
  id: string,
  request: ApiRequest,
  api: CallersApi,
  progress: Progress | null,
): Promise<ApiAnswer | null> {
  const how = followed(id)
  const answer = await api.send({ ...request, stream: true })
  if (!isEventStream(answer)) return read(answer)
  for await (const event of eventsOf(answer, request.signal)) {
    if (event.event === 'error') return failed(event)
    progress?.say(how?.told(event) ?? '')
    const { state } = how ?? {}
    if (!state || !how?.mayWait?.(event)) continue
    const { method, signal, path } = request
    const { body } = await api.ask({ method, signal, path: state.path(path) })
    if (state.waits(body)) break
  }
  return null
}
