import type { CallToolResult } from '@modelcontextprotocol/server'
import { BerthError, badRequest } from '../../errors.ts'
import { OUTPUT_LIMIT } from '../exec/output.ts'
import { type ApiRequest, type ApiResponse, type CallersApi, pathOf, readResponse } from './callers-api.ts'
import { eventsOf, failureOf, isEventStream } from './events.ts'
import { followRule } from './follow.ts'
import type { Progress } from './progress.ts'
import type { OperationTool } from './tool.ts'

/** A tool call of an MCP client. */
export interface ToolCall {
  readonly operation: OperationTool
  readonly args: Readonly<Record<string, unknown>>
  readonly api: CallersApi
  /** Fires when the client no longer waits for the result. */
  readonly signal: AbortSignal
  /** Receives progress; null if the client did not ask for it. */
  readonly progress: Progress | null
}

/**
 * Calls an operation with one request to the API and returns its response as the result. A failure is a result too,
 * because a model can react to it (MCP, "Tools", error handling).
 */
export async function callTool(call: ToolCall): Promise<CallToolResult> {
  try {
    return resultOf(await responseTo(call))
  } catch (error) {
    if (error instanceof BerthError) return resultOf({ status: error.status, body: { ...error.toBody() } })
    throw error
  }
}

function resultOf({ status, body }: ApiResponse): CallToolResult {
  if (status < 400)
    return { content: [{ type: 'text', text: JSON.stringify(body) }], structuredContent: body }
  return { isError: true, content: [{ type: 'text', text: JSON.stringify({ ...body, status }) }] }
}

async function responseTo({ operation, args, api, signal, progress }: ToolCall): Promise<ApiResponse> {
  const { follow, request } = requestOf(operation, args, signal)
  if (follow) {
    const refusal = await followToEnd(operation.id, request, api, progress)
    return refusal ?? api.fetchJson(request)
  }
  // The API stores complete responses only under an idempotency key.
  if (operation.id === 'exec.run' && progress && !api.isRepeatable)
    return execWithProgress(api, request, progress)
  return api.fetchJson(request)
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
    if (name === 'follow' && followRule(id)) {
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
 * Follows the event stream of an operation until it ends or waits for the caller.
 *
 * @returns the response if the API refused or the stream failed, else null
 */
async function followToEnd(
  id: string,
  request: ApiRequest,
  api: CallersApi,
  progress: Progress | null,
): Promise<ApiResponse | null> {
  const how = followRule(id)
  const response = await api.send({ ...request, stream: true })
  if (!isEventStream(response)) return readResponse(response)
  for await (const event of eventsOf(response, request.signal)) {
    if (event.event === 'error') return failureOf(event)
    progress?.add(how?.textOf(event) ?? '')
    const { state } = how ?? {}
    if (!state || !how?.mayWait?.(event)) continue
    const { method, signal, path } = request
    const { body } = await api.fetchJson({ method, signal, path: state.path(path) })
    if (state.waits(body)) break
  }
  return null
}

type Stream = 'stdout' | 'stderr'

/** Runs a command and reports its output as progress. The response is the same as without progress. */
async function execWithProgress(
  api: CallersApi,
  request: ApiRequest,
  progress: Progress,
): Promise<ApiResponse> {
  const response = await api.send({ ...request, stream: true })
  if (!isEventStream(response)) return readResponse(response)
  const kept = { stdout: new KeptOutput(), stderr: new KeptOutput() }
  for await (const { event, data } of eventsOf(response, request.signal)) {
    if (event === 'stdout' || event === 'stderr') {
      const bytes = Buffer.from(data.data, data.encoding === 'base64' ? 'base64' : 'utf8')
      kept[event satisfies Stream].add(bytes)
      progress.add(data.encoding === 'base64' ? bytes.toString('utf8') : data.data)
    } else if (event === 'exit') {
      const { stdout, stderr } = kept
      const truncated = data.truncated || stdout.isCut || stderr.isCut
      return { status: 200, body: { stdout: stdout.text(), stderr: stderr.text(), ...data, truncated } }
    } else if (event === 'error') {
      return failureOf({ event, data })
    }
  }
  throw new Error('The stream of a command broke off.')
}

/** The stored bytes of one stream, up to the limit of a response. */
class KeptOutput {
  readonly #chunks: Uint8Array[] = []
  #size = 0
  isCut = false

  add(bytes: Uint8Array): void {
    const room = OUTPUT_LIMIT - this.#size
    if (bytes.length > room) this.isCut = true
    const fitting = bytes.subarray(0, room)
    this.#size += fitting.length
    if (fitting.length > 0) this.#chunks.push(fitting)
  }

  text(): string {
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(this.#chunks))
  }
}
