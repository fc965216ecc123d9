import { readdirSync, readlinkSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { dialLoopback } from '../../../src/compute/local/dial.ts'
import type { Dialer, LoopbackHost } from '../../../src/compute/sandbox.ts'
import { Gateway, type PortSite } from '../../../src/hosting/sites/gateway.ts'
import { SlugHosts } from '../../../src/hosting/sites/main-port/slug-hosts.ts'
import type { GatewayTimes } from '../../../src/hosting/sites/site-state.ts'
import type { Site, Upstream } from '../../../src/hosting/sites/upstream.ts'
import { Listener } from '../../../src/http/listener.ts'
import { createLogger } from '../../../src/runtime/logger.ts'
import { freePort, projectPorts } from '../../support/ports.ts'
import { until } from '../../support/processes.ts'

/** A server that shares this machine's network. */
export const SERVER: Dialer = { dial: dialLoopback }

/** An app of that server. */
export const appOn = (port: number, host?: LoopbackHost): Upstream => ({
  kind: 'app',
  server: SERVER,
  port,
  ...(host && { host }),
})

/** A gateway with one site. Disposing of it fails where a socket is left open or a request is still counted. */
export interface TestSite extends AsyncDisposable {
  readonly gateway: Gateway
  readonly site: Site
  readonly port: number
  /** Requests, streams and WebSockets that have begun, and those that are not over. */
  readonly uses: { begun: number; open: number }
  /** Requests that wait for an upstream. */
  waiting(): number
  log(): string
}

/** How a test wants its site. */
export interface TestSiteOptions {
  upstream?: Upstream
  times?: Partial<GatewayTimes>
  slug?: string
  crash?: () => string | null
  maxClients?: number
}

/** Opens a site on a free port. */
export async function testSite({
  upstream,
  times,
  slug,
  crash,
  maxClients,
}: TestSiteOptions = {}): Promise<TestSite> {
  const before = openSockets()
  const lines: string[] = []
  const port = freePort()
  const gateway = new Gateway({
    host: '127.0.0.1',
    ports: { first: port, last: port },
    publicHost: null,
    logger: createLogger('debug', (line) => lines.push(line), Date.now),
    ...(times && { times }),
    ...(maxClients && { maxClients }),
  })
  const uses = { begun: 0, open: 0 }
  const onUse = () => {
    uses.begun += 1
    uses.open += 1
    return () => {
      uses.open -= 1
    }
  }
  const site = await gateway.open({ port, slug: slug ?? null, onUse, ...(crash && { crash }) })
  if (upstream) site.setUpstream(upstream)
  return {
    gateway,
    site,
    port,
    uses,
    waiting: () => (site as PortSite).state.waiting,
    log: () => lines.join(''),
    async [Symbol.asyncDispose]() {
      await gateway.close()
      await until(() => openSockets() <= before, 'all sockets are closed')
      await until(() => uses.open === 0, 'nothing is under way')
    },
  }
}

/** Sockets that this process holds open. */
export function openSockets(): number {
  // What holds the ports of this process is one of them from now on.
  projectPorts()
  return readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith('socket:')
    } catch {
      return false
    }
  }).length
}

/** An end of a connection, with what came so far. */
export class Raw implements Disposable {
  received = ''
  ended = false
  failed = false

  constructor(readonly socket: Socket) {
    socket.on('data', (chunk) => {
      this.received += chunk.toString('latin1')
    })
    socket.on('end', () => {
      this.ended = true
    })
    socket.on('error', () => {
      this.failed = true
    })
    socket.on('close', () => {
      this.ended = true
    })
  }

  /** Connects to a port of this machine. */
  static async to(port: number): Promise<Raw> {
    const { connect } = await import('node:net')
    const socket = connect(port, '127.0.0.1')
    const raw = new Raw(socket)
    await new Promise((resolve) => socket.once('connect', resolve))
    return raw
  }

  /** Sends text as Latin-1. */
  send(text: string): void {
    this.socket.write(Buffer.from(text, 'latin1'))
  }

  /** Waits until `marker` has come, and gives everything so far, which is then forgotten. */
  async until(marker: string): Promise<string> {
    await until(() => this.received.includes(marker), `${JSON.stringify(marker)} comes`)
    const text = this.received
    this.received = ''
    return text
  }

  /** Waits for the end of the connection, and gives what came. */
  async end(): Promise<string> {
    await until(() => this.ended, 'the connection ends')
    return this.received
  }

  [Symbol.dispose](): void {
    this.socket.destroy()
  }
}

/** An app that speaks as the test wants, byte for byte. */
export interface RawApp extends AsyncDisposable {
  readonly port: number
  readonly upstream: Upstream
  /** The connections that have come so far. */
  readonly connections: Raw[]
  /** Waits for a connection, by its number. */
  connection(index?: number): Promise<Raw>
  /** Refuses connections from now on. */
  refuse(): void
}

/** Starts such an app. */
export async function rawApp(onConnection: (app: Raw) => void = () => {}): Promise<RawApp> {
  const connections: Raw[] = []
  const server: Server = createServer({ allowHalfOpen: false }, (socket) => {
    const raw = new Raw(socket)
    connections.push(raw)
    onConnection(raw)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    port,
    upstream: appOn(port),
    connections,
    async connection(index = 0) {
      await until(() => connections[index] !== undefined, `connection ${index} comes`)
      return connections[index] as Raw
    },
    refuse: () => void server.close(),
    async [Symbol.asyncDispose]() {
      for (const { socket } of connections) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The whole way of bytes: a client, a site and an app, both ends as the test wants them. */
export interface RawWay extends AsyncDisposable {
  readonly client: Raw
  readonly site: TestSite
  readonly backend: RawApp
}

/** Starts an app and opens its site, with one client connected. */
export async function rawWay(): Promise<RawWay> {
  await using parts = new AsyncDisposableStack()
  const backend = parts.use(await rawApp())
  const site = parts.use(await testSite(backend))
  const client = parts.use(await Raw.to(site.port))
  const started = parts.move()
  return { client, site, backend, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

/** A site named `demo`, and a main port that it answers on beside an API. */
export async function mainPort(upstream?: Upstream, times = {}) {
  const before = openSockets()
  const site = await testSite({ slug: 'demo', times, ...(upstream && { upstream }) })
  const listener = new Listener('127.0.0.1', 0)
  listener.open((request) => new Response(`API ${request.headers.get('host')}`))
  const host = `demo.localhost:${listener.port}`
  listener.route(new SlugHosts(site.gateway))
  return {
    site,
    listener,
    host,
    fetch: (path: string, init: RequestInit = {}) =>
      fetch(`http://127.0.0.1:${listener.port}${path}`, {
        redirect: 'manual',
        decompress: false,
        ...init,
        headers: { host, ...(init.headers as object) },
      }),
    async [Symbol.asyncDispose]() {
      await listener.close()
      await site[Symbol.asyncDispose]()
      await until(() => openSockets() <= before, 'all sockets are closed')
    },
  } satisfies { site: TestSite; listener: Listener } & Record<PropertyKey, unknown>
}

/** An app made with `Bun.serve`. */
export function app(
  fetch: (
    request: Request,
    server: Bun.Server<undefined>,
  ) => Response | undefined | Promise<Response | undefined>,
  more: object = {},
): { port: number; upstream: Upstream } & AsyncDisposable {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch,
    ...more,
  } as never) as Bun.Server<undefined>
  const port = server.port ?? 0
  return { port, upstream: appOn(port), [Symbol.asyncDispose]: () => server.stop(true) }
}

/** A request of the least that a gateway takes. */
export const get = (path: string, ...lines: string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: localhost', ...lines, '', ''].join('\r\n')
