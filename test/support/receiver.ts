import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { freePort } from './ports.ts'
import { until } from './processes.ts'

/** A request that a receiver got. */
export interface Received {
  path: string
  headers: Record<string, string>
  body: string
  /** The body as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  payload: any
  /** By a clock that never jumps. */
  at: number
}

/** Answers a request that was read whole. */
export type Reply = (response: ServerResponse, received: Received) => void

/** A receiver of webhooks: a real server on loopback. */
export interface Receiver extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly received: Received[]
  /** Connections that are open. */
  readonly open: number
  /** How it answers from now on. */
  reply: Reply
  /** Resolves when it has got so many requests. */
  got(count: number, ms?: number): Promise<Received[]>
}

/** Answers with a status and a body. */
export const replyWith =
  (status: number, body = '', headers: Record<string, string> = {}): Reply =>
  (response) =>
    void response.writeHead(status, headers).end(body)

/** How a receiver is set up. */
export interface ReceiverOptions {
  reply?: Reply
  /** Certificate and key, as PEM, of one that speaks TLS. */
  tls?: { cert: string; key: string }
  host?: string
}

/** Starts a receiver that responds with 200, or with a given status. */
export async function receiver({ reply, tls, host = '127.0.0.1' }: ReceiverOptions = {}): Promise<Receiver> {
  const received: Received[] = []
  const sockets = new Set<object>()
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Uint8Array[] = []
    request.on('data', (chunk: Uint8Array) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const headers = request.headers as Record<string, string>
      const one = { path: request.url ?? '', headers, body, payload: JSON.parse(body), at: performance.now() }
      received.push(one)
      self.reply(response, one)
    })
  }
  const server = tls ? createHttps(tls, answer) : createHttp(answer)
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(freePort(), host, resolve))
  const { port } = server.address() as AddressInfo
  const self: Receiver = {
    url: `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}/hook`,
    port,
    received,
    get open() {
      return sockets.size
    },
    reply: reply ?? replyWith(200),
    async got(count, ms) {
      await until(() => received.length >= count, `${count} requests, there are ${received.length}`, ms)
      return received
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return self
}

/** What a delivery says, by the public library as a receiver would call it; throws where it does not accept it. */
export const verify = (secret: string, { headers, body }: Pick<Received, 'headers' | 'body'>) =>
  new Webhook(secret).verify(body, headers)
