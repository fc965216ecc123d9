import type { TestBerth } from '../../support/berth.ts'

/** What every request of a client of 2026-07-28 says of itself. */
export const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Sends one JSON-RPC request of protocol 2026-07-28 by hand, with the first key. */
export function send(
  berth: TestBerth,
  method: string,
  params: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<Response> {
  return berth.fetch('/mcp', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headersOf(method, params), ...headers },
    body: JSON.stringify(messageFor(method, params)),
  })
}

/** A JSON-RPC request of protocol 2026-07-28. */
export const messageFor = (method: string, params: Record<string, unknown>): object => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params: { ...params, _meta: { ...META, ...(params._meta as object) } },
})

/** The headers that go with it. */
export function headersOf(method: string, params: Record<string, unknown>): Record<string, string> {
  const named = params.name ?? params.uri
  return {
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(typeof named === 'string' ? { 'mcp-name': named } : {}),
  }
}

/** The message of an answer, whether it came as JSON or as the last event of a stream. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
export async function messageOf(answer: Response): Promise<any> {
  const text = await answer.text()
  if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) return JSON.parse(text)
  const data = [...text.matchAll(/^data: (.*)$/gm)].map((match) => match[1] ?? '')
  return JSON.parse(data.at(-1) ?? '')
}
