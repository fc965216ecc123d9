import {
  type CallToolResult,
  ProtocolError,
  ResourceNotFoundError,
  Server,
} from '@modelcontextprotocol/server'
import { BerthError } from '../../errors.ts'
import { type Caller, isScoped } from '../../http/caller.ts'
import type { Logger } from '../../runtime/logger.ts'
import { type CallersApi, ConnectionCut } from './api.ts'
import { callTool } from './call.ts'
import { complete } from './completion.ts'
import { INSTRUCTIONS } from './instructions.ts'
import { Progress } from './progress.ts'
import { fillPrompt, LISTED_PROMPTS } from './prompts.ts'
import { listResources, RESOURCE_TEMPLATES, readResource } from './resources.ts'
import type { Sessions } from './sessions.ts'
import type { OperationTool } from './tool.ts'

const INVALID_PARAMS = -32602
const INTERNAL_ERROR = -32603

/** Hosts may keep the lists that change with a new version alone. */
const HOUR = 3_600_000

/** What the server of one MCP request is made of. */
export interface ServerParts {
  readonly version: string
  readonly tools: readonly OperationTool[]
  readonly caller: Caller
  readonly api: CallersApi
  /** The session of a client of 2025; null for others. */
  readonly session: string | null
  readonly sessions: Sessions
  readonly logger: Logger
}

/** The MCP server that answers one request: it knows who asks, and nothing of any request before. */
export function serverFor(parts: ServerParts): Server {
  const { version, tools, caller, api, logger } = parts
  const server = new Server(
    { name: 'berth', title: 'berth', version },
    {
      capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
      instructions: INSTRUCTIONS,
      cacheHints: {
        // What a credential may call changes with its scope.
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
  server.setRequestHandler('tools/list', () => ({ tools: callable.map(({ tool }) => tool) }))
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
    const call = { operation, given: params.arguments ?? {}, api, signal: mcpReq.signal, progress }
    return await answered(callTool(call), `tool ${params.name}`, mcpReq.signal)
  })
  server.setRequestHandler('resources/list', async (_, { mcpReq }) => ({
    resources: await answered(listResources(api, mcpReq.signal), 'list of resources', mcpReq.signal),
  }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [...RESOURCE_TEMPLATES] }))
  server.setRequestHandler('resources/read', async ({ params: { uri } }, { mcpReq }) => {
    const found = await answered(readResource(uri, api, mcpReq.signal), 'resource', mcpReq.signal)
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
    return answered(
      complete(argument, context?.arguments ?? {}, api, mcpReq.signal),
      'completion',
      mcpReq.signal,
    )
  })
  return server

  /** Makes of what could not be answered an error of the protocol; what nobody foresaw is logged, and told to nobody. */
  async function answered<Answer>(
    answer: Promise<Answer>,
    what: string,
    signal: AbortSignal,
  ): Promise<Answer> {
    try {
      return await answer
    } catch (error) {
      if (error instanceof BerthError) {
        throw new ProtocolError(error.status < 500 ? INVALID_PARAMS : INTERNAL_ERROR, error.message, {
          ...error.toBody(),
          status: error.status,
        })
      }
      if (error instanceof ConnectionCut) throw new ProtocolError(INTERNAL_ERROR, error.message)
      // Where whoever asked has gone, what ends the work is no fault.
      if (!signal.aborted) logger.error('an MCP request failed', { what, error })
      throw new ProtocolError(INTERNAL_ERROR, 'An unforeseen fault; the log tells more.')
    }
  }
}
