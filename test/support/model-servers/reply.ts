/** What a model server is to answer to one request. */
export interface Reply {
  text?: string
  calls?: ReplyCall[]
  /** What it thinks before it speaks. */
  thinks?: string
  /** Why it stops; of its own accord without it. */
  stop?: 'length' | 'refusal'
  /** Tokens; 100 read and 20 written without it, and none reported with null. */
  usage?: { input: number; output: number } | null
}

/** A call of a tool. */
export interface ReplyCall {
  tool: string
  /** Arguments; a text goes as it is, whatever it is. */
  input: object | string
}

/** A request that came. */
export interface ModelRequest {
  path: string
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  body: any
  /** Resolves when the client has gone away. */
  gone: Promise<void>
}

/** An answer in the making: a reply, a response of its own kind, or what decides it when the request is there. */
export type Answering =
  | Reply
  | Response
  | ((request: ModelRequest) => Reply | Response | Promise<Reply | Response>)

/** The model calls one tool. */
export const call = (tool: string, input: object | string): Reply => ({ calls: [{ tool, input }] })

/** The model says that it is done. */
export const finish = (result: string, status = 'completed'): Reply => call('finish', { status, result })

/** A text in two or three pieces, as streams come. */
export function pieces(text: string): string[] {
  const third = Math.max(1, Math.ceil(text.length / 3))
  return [0, 1, 2].map((at) => text.slice(at * third, (at + 1) * third)).filter((piece) => piece !== '')
}

/** Arguments as they are written. */
export const argumentsOf = ({ input }: ReplyCall): string =>
  typeof input === 'string' ? input : JSON.stringify(input)

/** Tokens of a reply. */
export const usageOf = ({ usage }: Reply): { input: number; output: number } | null =>
  usage === undefined ? { input: 100, output: 20 } : usage

/** A stream of server-sent events. */
export const eventStream = (lines: string[]): Response =>
  new Response(lines.join(''), { headers: { 'content-type': 'text/event-stream' } })
