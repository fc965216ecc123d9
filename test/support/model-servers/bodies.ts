import type { ModelRequest } from './reply.ts'
import type { Protocol } from './server.ts'

/** A message of a request, in the terms of both protocols. */
export interface Said {
  role: string
  text: string
  /** Ids of the calls that it makes. */
  calls: string[]
  /** Ids of the calls that it answers. */
  results: string[]
}

interface Block {
  type: string
  text?: string
  id?: string
  tool_use_id?: string
  content?: string
}

interface Message {
  role: string
  content: string | null | Block[]
  tool_calls?: { id: string }[]
  tool_call_id?: string
}

/** What a request says, the system prompt left out. */
export function saidIn(protocol: Protocol, { body }: ModelRequest): Said[] {
  const messages: Message[] = body.messages
  if (protocol === 'openai') {
    return messages
      .filter(({ role }) => role !== 'system')
      .map(({ role, content, tool_calls = [], tool_call_id }) => ({
        role,
        text: String(content ?? ''),
        calls: tool_calls.map(({ id }) => id),
        results: tool_call_id === undefined ? [] : [tool_call_id],
      }))
  }
  return messages.map(({ role, content }) => {
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])
    return {
      role,
      text: blocks.map((block) => block.text ?? ('content' in block ? block.content : '')).join('\n'),
      calls: blocks.flatMap((block) => (block.type === 'tool_use' && 'id' in block ? [block.id ?? ''] : [])),
      results: blocks.flatMap((block) =>
        'tool_use_id' in block && block.tool_use_id ? [block.tool_use_id] : [],
      ),
    }
  })
}

/** What the tools gave, as the request tells the model, in order. */
export const resultsIn = (protocol: Protocol, request: ModelRequest | undefined): string[] =>
  request === undefined
    ? []
    : saidIn(protocol, request)
        .filter(({ results }) => results.length > 0)
        .flatMap(({ text, results }) => (results.length === 1 ? [text] : text.split('\n')))

/** The system prompt of a request. */
export function systemIn(protocol: Protocol, { body }: ModelRequest): string {
  return protocol === 'openai'
    ? body.messages[0].content
    : body.system.map(({ text }: { text: string }) => text).join('')
}

/** Names of the tools that a request offers. */
export const toolsIn = (protocol: Protocol, { body }: ModelRequest): string[] =>
  body.tools.map((tool: { name: string; function: { name: string } }) =>
    protocol === 'openai' ? tool.function.name : tool.name,
  )
