import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Identity } from '../../../support/authority.ts'

/** What a git server is asked for. */
export interface Asked {
  method: string
  url: string
  host: string
  authorization: string | undefined
}

/** A git server on loopback: git's own `http-backend` behind TLS. */
export interface GitServer extends AsyncDisposable {
  readonly port: number
  readonly asked: Asked[]
}

/** How it answers. */
interface GitServerOptions {
  /** The folder whose repositories it serves. */
  root: string
  tls: Identity
  /** The only `user:password` that it lets in; without it everybody. */
  credentials?: string
  /** Answers in its place where it returns true. */
  instead?: (asked: Asked, response: ServerResponse) => boolean
}

/** Starts a git server. */
export async function gitServer(options: GitServerOptions): Promise<GitServer> {
  const asked: Asked[] = []
  const server: Server = createServer(options.tls, (request, response) => {
    const { method = '', url = '', headers } = request
    const one = { method, url, host: headers.host ?? '', authorization: headers.authorization }
    asked.push(one)
    if (options.instead?.(one, response)) return
    const wanted = options.credentials && `Basic ${Buffer.from(options.credentials).toString('base64')}`
    if (wanted && headers.authorization !== wanted) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
      return
    }
    serve(options.root, request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** One request as CGI (RFC 3875). */
async function serve(root: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  const [path = '', query = ''] = (request.url ?? '').split('?')
  const child = Bun.spawn(['git', 'http-backend'], {
    stdin: Buffer.concat(chunks),
    stdout: 'pipe',
    stderr: 'ignore',
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      REQUEST_METHOD: request.method ?? '',
      PATH_INFO: path,
      QUERY_STRING: query,
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: String(request.headers['content-encoding'] ?? ''),
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REMOTE_ADDR: '127.0.0.1',
    },
  })
  const bytes = Buffer.from(await child.stdout.bytes())
  const end = bytes.indexOf('\r\n\r\n')
  const headers = new Map(
    bytes
      .subarray(0, end)
      .toString()
      .split('\r\n')
      .map((line) => line.split(/: */, 2) as [string, string]),
  )
  const status = Number.parseInt(headers.get('Status') ?? '200', 10)
  headers.delete('Status')
  response.writeHead(status, Object.fromEntries(headers)).end(bytes.subarray(end + 4))
}
