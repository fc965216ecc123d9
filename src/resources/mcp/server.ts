import {
  type CallToolResult,
  ProtocolError,
  ResourceNotFoundError,
  Server,
} from '@modelcontextprotocol/server'
import { BerthError } from '../../errors.ts'
import { type Caller, isScoped } from '../../http/caller.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Leaves } from '../exec/leave.ts'
import { callTool } from './call.ts'
import { type CallersApi, ConnectionCut, fillPath } from './callers-api.ts'
import { Progress } from './progress.ts'
import { fillPrompt, LISTED_PROMPTS } from './prompts.ts'
import type { Publications } from './publications.ts'
import { listResources, RESOURCE_TEMPLATES, readResource } from './resources.ts'
import type { ResultForm } from './result.ts'
import type { McpSessions } from './sessions.ts'
import type { OperationTool } from './tool.ts'
import { listed, type ToolView } from './tool-list.ts'

const INVALID_PARAMS = -32602
const INTERNAL_ERROR = -32603

/** Lists that change only with a new version may be cached for an hour. */
const HOUR = 3_600_000

/** Dependencies of the server of one MCP request. */
interface McpServerOptions {
  readonly version: string
  readonly tools: readonly OperationTool[]
  /** Which tools are listed, and how. */
  readonly view: ToolView
  readonly caller: Caller
  readonly api: CallersApi
  readonly publications: Publications
  readonly leaves: Leaves
  readonly form: ResultForm
  /** Returns the arguments of the call with this id, as they came. */
  readonly argumentsOf: (id: string | number) => Readonly<Record<string, unknown>>
  /** The session of a client of 2025; null for other clients. */
  readonly session: string | null
  readonly sessions: McpSessions
  readonly logger: Logger
}

/** Makes the MCP server that handles one request. It knows the caller and keeps no state between requests. */
export function serverFor(parts: McpServerOptions): Server {
  const { version, tools, caller, api, logger } = parts
  const server = new Server(
    { name: 'berth', title: 'berth', version },
    {
      capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
      instructions: INSTRUCTIONS,
      cacheHints: {
        // The callable operations depend on the credential's scope.
        'tools/list': { ttlMs: 60_000, cacheScope: 'private' },
        'prompts/list': { ttlMs: HOUR, cacheScope: 'public' },
        'resources/templates/list': { ttlMs: HOUR, cacheScope: 'public' },
        'resources/list': { ttlMs: 0, cacheScope: 'private' },
        'resources/read': { ttlMs: 0, cacheScope: 'private' },
        'server/discover': { ttlMs: HOUR, cacheScope: 'public' },
      },
    },
  )
  const callable = isScoped(caller) ? tools.filter((one) => !one.accountLevel) : tools
  server.setRequestHandler('tools/list', () => ({ tools: listed(callable, parts.view) }))
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }): Promise<CallToolResult> => {
    const operation = tools.find(({ tool }) => tool.name === params.name)
    if (!operation) throw new ProtocolError(INVALID_PARAMS, `There is no tool "${params.name}".`)
    const token = mcpReq._meta?.progressToken
    const { credentialId } = caller
    using _ = parts.session
      ? parts.sessions.begin({ credentialId, session: parts.session }, mcpReq.id, () => void server.close())
      : null
    using progress =
      token === undefined
        ? null
        : new Progress((done, message) =>
            mcpReq.notify({
              method: 'notifications/progress',
              params: { progressToken: token, progress: done, message },
            }),
          )
    const { publications, leaves, form } = parts
    const args = parts.argumentsOf(mcpReq.id)
    const call = { operation, args, api, signal: mcpReq.signal, progress, publications, leaves, form }
    return await toProtocolErrors(callTool(call), `tool ${params.name}`, mcpReq.signal)
  })
  server.setRequestHandler('resources/list', async (_, { mcpReq }) => ({
    resources: await toProtocolErrors(listResources(api, mcpReq.signal), 'list of resources', mcpReq.signal),
  }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [...RESOURCE_TEMPLATES] }))
  server.setRequestHandler('resources/read', async ({ params: { uri } }, { mcpReq }) => {
    const found = await toProtocolErrors(readResource(uri, api, mcpReq.signal), 'resource', mcpReq.signal)
    if (found === null) throw new ResourceNotFoundError(uri)
    return found
  })
  server.setRequestHandler('prompts/list', () => ({ prompts: [...LISTED_PROMPTS] }))
  server.setRequestHandler('prompts/get', ({ params }) => {
    const filled = fillPrompt(params.name, params.arguments ?? {})
    if (filled === null) throw new ProtocolError(INVALID_PARAMS, `There is no prompt "${params.name}".`)
    if ('missing' in filled) {
      throw new ProtocolError(INVALID_PARAMS, `The argument "${filled.missing}" is missing.`)
    }
    const { text, description } = filled
    return { description, messages: [{ role: 'user', content: { type: 'text', text } }] }
  })
  server.setRequestHandler('completion/complete', ({ params }, { mcpReq }) => {
    const { ref, argument, context } = params
    const isKnown =
      ref.type === 'ref/prompt'
        ? LISTED_PROMPTS.some(({ name }) => name === ref.name)
        : RESOURCE_TEMPLATES.some(({ uriTemplate }) => uriTemplate === ref.uri)
    if (!isKnown) throw new ProtocolError(INVALID_PARAMS, 'There is nothing of that name to complete.')
    return toProtocolErrors(
      complete(argument, context?.arguments ?? {}, api, mcpReq.signal),
      'completion',
      mcpReq.signal,
    )
  })
  return server

  /** Converts errors to errors of the protocol. Unexpected errors are logged and hidden from the caller. */
  async function toProtocolErrors<Result>(
    response: Promise<Result>,
    what: string,
    signal: AbortSignal,
  ): Promise<Result> {
    try {
      return await response
    } catch (error) {
      if (error instanceof BerthError) {
        throw new ProtocolError(error.status < 500 ? INVALID_PARAMS : INTERNAL_ERROR, error.message, {
          ...error.toBody(),
          status: error.status,
        })
      }
      if (error instanceof ConnectionCut) throw new ProtocolError(INTERNAL_ERROR, error.message)
      // A caller that disconnects aborts the work; that is not an error.
      if (!signal.aborted) logger.error('an MCP request failed', { what, error })
      throw new ProtocolError(INTERNAL_ERROR, "An internal error; berth's log says more.")
    }
  }
}

/** Explains berth as a whole to a model. */
const INSTRUCTIONS = `berth provisions servers: workspaces in which commands, agents and apps run on this machine.
Find a server with servers_list or make one with servers_create; nearly all tools take its id as serverId.
Use exec_run for commands and files_read and files_write for files. To put an app behind a URL use deployments_create for a workspace, or a project (projects_create) for code from a template or a git repository. tasks_create gives a goal to an agent, builds_create has a new app made; both go on in the background: follow them with tasks_events and builds_logs and "follow": true.
No call takes longer than 45 s: what does goes on, and the response says how to follow it. A long result is cut in the middle, and ends with the tool and the arguments that read the rest.
A tool that fails answers with {"error", "message", "status"}; the message names the cause and the remedy. not_found also means that the credential does not reach it. Ask the person before anything is deleted.`

/** Largest number of values in one response (MCP, "Completion"). @bound system */
const MAX_VALUES = 100

/** The source of an argument's values: the path of an operation, and the field of its response. */
interface ValueSource {
  path: string
  field: string
}

/** Keyed by the name of the argument, in resource templates and prompts alike. */
const SOURCES: Readonly<Record<string, ValueSource>> = {
  serverId: { path: '/servers', field: 'servers' },
  projectId: { path: '/projects', field: 'projects' },
  /**
   * An argument of the prompt that gives an app a URL. It takes a template or the URL of a repository; only templates
   * can be completed.
   */
  source: { path: '/templates', field: 'templates' },
  taskId: { path: '/servers/{serverId}/tasks', field: 'tasks' },
  buildId: { path: '/servers/{serverId}/builds', field: 'builds' },
  path: { path: '/servers/{serverId}/files', field: 'files' },
}

/** The completions of an argument. */
type Completion = { completion: { values: string[]; total: number; hasMore: boolean } }

/**
 * Completes an argument.
 *
 * @param known the arguments that are already filled in
 */
async function complete(
  argument: { name: string; value: string },
  known: Readonly<Record<string, string>>,
  api: CallersApi,
  signal: AbortSignal,
): Promise<Completion> {
  const source = Object.hasOwn(SOURCES, argument.name) ? SOURCES[argument.name] : undefined
  const needed = [...(source?.path.matchAll(/\{([^}]+)\}/g) ?? [])].map(([, name]) => name ?? '')
  if (source === undefined || needed.some((name) => !known[name])) return completionOf([])
  const { status, body } = await api.fetchJson({ method: 'GET', path: fillPath(source.path, known), signal })
  if (status !== 200) return completionOf([])
  const all = (body[source.field] as (string | { id: string })[]).map((one) =>
    typeof one === 'string' ? one : one.id,
  )
  return completionOf(all.filter((value) => value.startsWith(argument.value)))
}

function completionOf(fitting: readonly string[]): Completion {
  const values = fitting.slice(0, MAX_VALUES)
  return { completion: { values, total: fitting.length, hasMore: values.length < fitting.length } }
}
