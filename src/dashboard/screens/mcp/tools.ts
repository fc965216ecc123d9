import type { OperationTool } from '../../../resources/mcp/tool.ts'
import { type ApiClient, ApiFailure, responseFailure, streamEvents } from '../../api/client.ts'
import { FieldError } from '../../components/field.tsx'

/** A tool as `/mcp` lists it. */
export type Tool = OperationTool['tool']

/** What a tool responded: the response of its operation, or the error of one that failed. */
export interface ToolCallResult {
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
export async function callMcpTool(
  api: ApiClient,
  name: string,
  args: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<ToolCallResult> {
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
  for await (const { data } of streamEvents(response)) last = data
  if (last === null) throw await responseFailure(response)
  return JSON.parse(last) as Message
}

/** The parts of a JSON Schema that say how a value is typed. */
interface FieldSchema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly string[]
  readonly anyOf?: readonly FieldSchema[]
  readonly description?: string
  readonly maxLength?: number
}

/** How the value of an argument is typed. */
type FieldKind = 'text' | 'lines' | 'number' | 'choice' | 'json'

/** An argument of a tool. */
export interface ToolField {
  readonly name: string
  readonly kind: FieldKind
  readonly isRequired: boolean
  readonly description: string
  /** The values of a choice. */
  readonly choices: readonly string[]
}

/** Characters from which a text has several lines. */
const LONG_TEXT = 100_000

/** Arguments without a limit that have several lines. */
const LINES = ['content', 'command', 'stdin']

/** Returns the arguments of a tool. */
export function toolFields({ inputSchema }: Tool): ToolField[] {
  const required = inputSchema.required ?? []
  const properties = Object.entries((inputSchema.properties ?? {}) as Record<string, FieldSchema>)
  return properties.map(([name, schema]) => ({
    name,
    ...typingOf(name, schema),
    isRequired: required.includes(name),
    description: schema.description ?? '',
  }))
}

function typingOf(name: string, schema: FieldSchema): Pick<ToolField, 'kind' | 'choices'> {
  const { type, maxLength = 0 } = schema
  if (schema.enum !== undefined) return { kind: 'choice', choices: schema.enum }
  if (type === 'boolean') return { kind: 'choice', choices: ['true', 'false'] }
  if (type === 'integer' || type === 'number') return { kind: 'number', choices: [] }
  if (type !== 'string') return { kind: 'json', choices: [] }
  return { kind: maxLength > LONG_TEXT || LINES.includes(name) ? 'lines' : 'text', choices: [] }
}

/**
 * Returns the arguments of a call from the typed values, by their names. Empty ones are left out.
 *
 * @throws FieldError if a number or JSON is invalid
 */
export function argumentsOf(
  fields: readonly ToolField[],
  { inputSchema }: Tool,
  values: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const properties = (inputSchema.properties ?? {}) as Record<string, FieldSchema>
  return Object.fromEntries(
    fields.flatMap((field): [string, unknown][] => {
      const value = values[field.name] ?? ''
      if (value === '') return []
      const isBoolean = properties[field.name]?.type === 'boolean'
      return [[field.name, isBoolean ? value === 'true' : sentValue(field, value)]]
    }),
  )
}

function sentValue({ name, kind }: ToolField, value: string): unknown {
  if (kind === 'json') return toolJson(name, value)
  if (kind !== 'number') return value
  const number = Number(value)
  if (Number.isNaN(number)) throw new FieldError(name, 'This is not a number.')
  return number
}

/**
 * Reads JSON that a person typed into a field.
 *
 * @throws FieldError
 */
export function toolJson(field: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new FieldError(field, `This is not JSON: ${(error as Error).message}`)
  }
}
