import { anthropicAnswer } from './anthropic.ts'
import { openaiAnswer } from './openai.ts'
import type { Answering, ModelRequest } from './reply.ts'

/** The protocols that a model server can speak. */
export const PROTOCOLS = ['openai', 'anthropic'] as const

/** One of them. */
export type Protocol = (typeof PROTOCOLS)[number]

/** A server that speaks a protocol as the real ones do, and answers what a test lays down. */
export interface ModelServer extends Disposable {
  readonly port: number
  /** What the requests that came were, in order. */
  readonly requests: ModelRequest[]
  /** Lays down other answers, and forgets the requests that came. */
  lay(answers: Answering[]): void
  /** Resolves when so many requests have come. */
  came(count: number): Promise<ModelRequest>
  /** Flags of a berth whose agent asks this server. */
  readonly flags: Record<string, unknown>
}

/** How a server is started. */
export interface ModelServerOptions {
  /** The key that it wants. */
  key?: string
  tls?: { cert: string; key: string }
  port?: number
}

const PATHS: Record<Protocol, string> = { openai: '/v1/chat/completions', anthropic: '/v1/messages' }

/** Starts one. @param laid one answer for each request, the last for all further ones */
export function modelServer(
  protocol: Protocol,
  laid: Answering[],
  options: ModelServerOptions = {},
): ModelServer {
  let answers = laid
  const requests: ModelRequest[] = []
  const waiting: { count: number; tell: (request: ModelRequest) => void }[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: options.port ?? 0,
    idleTimeout: 0,
    ...(options.tls ? { tls: options.tls } : {}),
    async fetch(incoming) {
      const { pathname: path } = new URL(incoming.url)
      const gone = new Promise<void>((resolve) => incoming.signal.addEventListener('abort', () => resolve()))
      const request: ModelRequest = { path, headers: incoming.headers, body: await incoming.json(), gone }
      requests.push(request)
      for (const { count, tell } of waiting)
        if (requests.length >= count) tell(requests[count - 1] ?? request)
      if (path !== PATHS[protocol]) return refusal(404, 'Not found.')
      const given =
        protocol === 'openai' ? incoming.headers.get('authorization') : incoming.headers.get('x-api-key')
      const wanted = protocol === 'openai' ? `Bearer ${options.key}` : options.key
      if (options.key !== undefined && given !== wanted)
        return refusal(401, `Incorrect API key provided: ${given}.`)
      const next = answers[Math.min(requests.length, answers.length) - 1] ?? {}
      const answer = typeof next === 'function' ? await next(request) : next
      if (answer instanceof Response) return answer.clone() as Response
      return protocol === 'openai'
        ? openaiAnswer(answer, request.body)
        : anthropicAnswer(answer, request.body)
    },
  })
  const port = server.port ?? 0
  const url = `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}/v1`
  return {
    port,
    requests,
    lay(next) {
      answers = next
      requests.length = 0
      waiting.length = 0
    },
    came(count) {
      const request = requests[count - 1]
      if (request) return Promise.resolve(request)
      return new Promise((tell) => waiting.push({ count, tell }))
    },
    flags: {
      agent: protocol,
      [`${protocol}-base-url`]: url,
      [`${protocol}-model`]: 'test-model',
      ...(options.key === undefined ? {} : { [`${protocol}-api-key`]: options.key }),
    },
    [Symbol.dispose]: () => void server.stop(true),
  }
}

/** A refusal in the form that both protocols share. */
export const refusal = (status: number, message: string, headers: Record<string, string> = {}): Response =>
  Response.json({ type: 'error', error: { type: 'error', message } }, { status, headers })

/** What comes of a stream that is cut in its middle. */
export async function cutOff(whole: Response): Promise<Response> {
  const bytes = await whole.bytes()
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(bytes.slice(0, Math.floor(bytes.length / 2)))
      controller.close()
    },
  })
  return new Response(body, { headers: whole.headers })
}
