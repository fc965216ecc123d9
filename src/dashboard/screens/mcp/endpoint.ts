import type { OperationTool } from '../../../resources/mcp/tool.ts'
import { type ApiClient, eventsOf } from '../../api/client.ts'
import { ApiFailure, failureOf } from '../../api/failure.ts'

/** A tool as `/mcp` lists it. */
export type Tool = OperationTool['tool']

/** What a tool responded: the response of its operation, or the error of one that failed. */
export interface ToolResult {
  readonly isError: boolean
  readonly value: unknown
}

/** A response of JSON-RPC 2.0. */
interface Message {
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string }
}

/** The path of the endpoint. */
export const MCP_PATH = '/mcp'

/** The same with titles, and with results as objects. */
const WITH_SCHEMAS = `${MCP_PATH}?schemas=full`

/** The types that a client has to accept (MCP, "Streamable HTTP"). */
export const ACCEPTED = 'application/json, text/event-stream'

/** Returns the message that calls a tool. */
export const callOf = (name: string, args: Readonly<Record<string, unknown>>) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args },
})

/**
 * Lists the tools that the session may call.
 *
 * @throws ApiFailure
 */
export async function listTools(api: ApiClient): Promise<readonly Tool[]> {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  return ((await send(api, message)) as { tools: Tool[] }).tools
}

/**
 * Calls a tool. Returns the result of a tool that fails, too.
 *
 * @throws ApiFailure if the endpoint refuses the call, or no response came
 */
export async function callTool(
  api: ApiClient,
  name: string,
  args: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { isError, content, structuredContent } = (await send(api, callOf(name, args), signal)) as {
    isError?: boolean
    content: { text: string }[]
    structuredContent?: unknown
  }
  // The text of a failure is JSON.
  return { isError: isError === true, value: structuredContent ?? JSON.parse(content[0]?.text ?? 'null') }
}

async function send(api: ApiClient, body: object, signal?: AbortSignal): Promise<unknown> {
  const request = { method: 'POST', path: WITH_SCHEMAS, body, form: undefined, bytes: undefined, signal }
  const response = await api.send(request, { accept: ACCEPTED })
  const { result, error } = await messageOf(response)
  if (error !== undefined) throw new ApiFailure(response.status, String(error.code), error.message)
  return result
}

/** Returns the message of a response, which is JSON, or the last event of a stream where the call took long. */
async function messageOf(response: Response): Promise<Message> {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream'))
    return (await response.json()) as Message
  let last: string | null = null
  for await (const { data } of eventsOf(response)) last = data
  if (last === null) throw await failureOf(response)
  return JSON.parse(last) as Message
}
