import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
} from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { TestBerth } from '../../support/berth.ts'

/** The official clients, each with the protocol that it comes to speak. */
export const CLIENTS = {
  '@modelcontextprotocol/client, 2026-07-28': 'v2',
  '@modelcontextprotocol/client, 2025-11-25': 'v2 of 2025',
  '@modelcontextprotocol/sdk 1': 'v1',
} as const
export type ClientKind = (typeof CLIENTS)[keyof typeof CLIENTS]

/** Operations that are no tools: WebSockets and streams of bytes. */
export const WITHOUT_TOOL: ReadonlySet<string> = new Set([
  'terminals.attach',
  'exec.stream',
  'files.download',
  'files.upload',
  'changes.stream',
])

/** A tool's result. */
export interface ToolResult {
  isError?: boolean
  content: { type: string; text: string }[]
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  structuredContent?: any
}

/** How a call is made. */
export interface CallOptions {
  onprogress?: (progress: { progress: number; message?: string | undefined }) => void
  signal?: AbortSignal
}

/** A connected client. */
export interface McpClient extends AsyncDisposable {
  /** The client itself, for what both generations have alike. */
  // biome-ignore lint/suspicious/noExplicitAny: the clients have no type in common
  readonly client: any
  readonly protocol: string
  call(name: string, given?: object, options?: CallOptions): Promise<ToolResult>
}

/** Connects an official client to a berth, with an API key; the first one where none is given. */
export async function connect(
  berth: TestBerth,
  kind: ClientKind,
  key: string = berth.info.api_key,
): Promise<McpClient> {
  const info = { name: 'berth-test', version: '1.0.0' }
  // The client then checks every result by the shape that its tool declares.
  const url = new URL(`${berth.info.mcp_url}?schemas=full`)
  const options = { requestInit: { headers: { authorization: `Bearer ${key}` } } }
  if (kind === 'v1') {
    const client = new ClientV1(info)
    const transport = new TransportV1(url, options)
    await client.connect(transport as Parameters<typeof client.connect>[0])
    return {
      client,
      protocol: transport.protocolVersion ?? '',
      call: async (name, given = {}, how = {}) =>
        (await client.callTool({ name, arguments: { ...given } }, undefined, how)) as unknown as ToolResult,
      [Symbol.asyncDispose]: () => client.close(),
    }
  }
  const modern = kind === 'v2'
  const client = new ClientV2(info, { versionNegotiation: { mode: modern ? 'auto' : 'legacy' } })
  await client.connect(new TransportV2(url, options))
  return {
    client,
    protocol: client.getNegotiatedProtocolVersion() ?? '',
    call: async (name, given = {}, how = {}) =>
      (await client.callTool({ name, arguments: { ...given } }, how)) as unknown as ToolResult,
    [Symbol.asyncDispose]: () => client.close(),
  }
}

/** What a failed call says. */
export function failureOf({ isError, content }: ToolResult): {
  error: string
  message: string
  status: number
} {
  if (isError !== true) throw new Error('The call did not fail.')
  return JSON.parse(content[0]?.text ?? '')
}
