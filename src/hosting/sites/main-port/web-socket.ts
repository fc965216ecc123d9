import { withoutSession } from '../../../http/session-cookie.ts'
import { MAX_MESSAGE_BYTES, type Socket, type SocketListener } from '../../../http/web-socket.ts'
import type { AppPort } from '../app-port.ts'
import type { BridgedSocket, SiteState } from '../site-state.ts'
import { respondTo } from './request-client.ts'
import { WebSocketRelay } from './web-socket-relay.ts'

/** Bun's WebSocket, which takes headers, unlike that of browsers. */
const ClientSocket = WebSocket as unknown as new (url: string, options: Bun.WebSocketOptions) => Bun.WebSocket

/** WebSockets of an app at a time. Each may have an incomplete message in memory, so that it is not any number. */
const MAX_SOCKETS = 100

/**
 * Bytes that may wait for a side that does not read, or more slowly than the other sends: of a WebSocket, and of all of an app
 * together. Bun cannot make the sender wait.
 */
const WAITING_LIMIT = 64 * 1024 * 1024
const ALL_WAITING_LIMIT = 128 * 1024 * 1024

/** Bytes that wait for a side that does read, so that the others are not added up. */
const USUAL_WAITING = 1024 * 1024

/** Close codes that are never sent in a frame (RFC 6455, section 7.4.1). */
const NO_CODE = 1005
const ABNORMAL = 1006
const TOO_BIG = 1009

/**
 * Fields of the handshake that the bridge sets anew for the app (RFC 6455, section 4.1), and fields that only a proxy
 * may set.
 */
const REPLACED_FIELDS =
  /^(?:connection|upgrade|host|te|keep-alive|proxy-connection|sec-websocket-(?:key|version|extensions|protocol)|x[-_]forwarded[-_].*|forwarded|x[-_]real[-_]ip)$/

/**
 * Bridges a WebSocket of the main port to one of the site's app. If the app refuses the handshake, sends it the
 * request again as an ordinary one and passes its response to the client.
 */
export async function bridgeWebSocket(
  request: Request,
  server: Bun.Server<SocketListener>,
  address: string,
  state: SiteState,
): Promise<Response | undefined> {
  const refusal = () => respondTo(request, address, state, { upgrade: true })
  const port = await state.appPort()
  if (port === null) return refusal()
  if (state.webSockets.size >= MAX_SOCKETS) {
    const message = `At SLUG.localhost an app has at most ${MAX_SOCKETS} WebSockets at a time. Its own port has as many as it takes.`
    return Response.json(
      { error: 'service_unavailable', message },
      { status: 503, headers: { 'retry-after': '1' } },
    )
  }
  let bridge: Bridge
  try {
    bridge = new Bridge(request, address, port, state)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    // A fragment in the target, or a protocol that is none or named twice.
    return new Response('The handshake of the WebSocket is not valid.\n', { status: 400 })
  }
  const protocol = await bridge.connect(request)
  if (protocol === null) return refusal()
  const headers = protocol === '' ? {} : { 'sec-websocket-protocol': protocol }
  if (server.upgrade(request, { data: bridge, headers })) return undefined
  bridge.closed(ABNORMAL, '')
  return new Response(null, { status: 400 })
}

class Bridge implements SocketListener, BridgedSocket {
  readonly #app: Bun.WebSocket
  readonly #state: SiteState
  readonly #release: (() => void)[]
  readonly #queued: (string | Buffer)[] = []
  #client: Socket | null = null
  #appClose: { code: number; reason: string } | null = null

  constructor(request: Request, address: string, port: AppPort, state: SiteState) {
    const target = request.url.slice(request.url.indexOf('/', 'http://'.length))
    const headers: Record<string, string> = { ...state.forwardedFields(address, request.headers.get('host')) }
    request.headers.forEach((value, name) => {
      const kept = name === 'cookie' ? withoutSession(value) : value
      if (kept !== null && !REPLACED_FIELDS.test(name)) headers[name] = kept
    })
    const protocols = request.headers
      .get('sec-websocket-protocol')
      ?.split(',')
      .map((one) => one.trim())
    const relay = new WebSocketRelay(port, () =>
      this.#refuse(`a message of the app is larger than ${MAX_MESSAGE_BYTES / 2 ** 20} MiB`),
    )
    try {
      // A few bytes that an app has compressed could take any memory.
      const options = { headers, perMessageDeflate: false, ...(protocols && { protocols }) }
      this.#app = new ClientSocket(relay.url(target), options)
    } catch (error) {
      relay.close()
      throw error
    }
    this.#app.binaryType = 'nodebuffer'
    this.#state = state
    state.webSockets.add(this)
    state.beginUse()
    this.#release = [
      () => state.endUse(),
      () => void state.webSockets.delete(this),
      port.hold(),
      state.onClose(() => this.#terminate()),
      () => relay.close(),
    ]
  }

  /** Resolves to the protocol that the app has chosen, '' for none, or null if the app accepts no WebSocket. */
  connect(request: Request): Promise<string | null> {
    const onAbort = () => this.closed(ABNORMAL, '')
    request.signal.addEventListener('abort', onAbort, { once: true })
    return new Promise((resolve) => {
      this.#app.onopen = () => {
        request.signal.removeEventListener('abort', onAbort)
        resolve(this.#app.protocol)
      }
      this.#app.onmessage = ({ data }) => this.#fromApp(data)
      this.#app.onclose = ({ code, reason }) => {
        this.#appClose = { code, reason }
        this.#releaseAll()
        resolve(null)
        if (this.#client !== null) closeSocket(this.#client, code, reason)
      }
    })
  }

  opened(socket: Socket): void {
    this.#client = socket
    for (const message of this.#queued.splice(0)) socket.send(message)
    if (this.#appClose !== null) closeSocket(socket, this.#appClose.code, this.#appClose.reason)
  }

  get waiting(): number {
    return this.#app.bufferedAmount + (this.#client?.getBufferedAmount() ?? 0)
  }

  message(message: string | Buffer): void {
    this.#app.send(message)
    if (this.#isTooMuchWaiting()) this.#refuse('the app does not read')
  }

  closed(code: number, reason: string): void {
    this.#client = null
    this.#releaseAll()
    closeSocket(this.#app, code, reason)
  }

  #fromApp(message: string | Buffer): void {
    if (this.#client === null) this.#queued.push(message)
    else this.#client.send(message)
    if (this.#isTooMuchWaiting()) this.#terminate()
  }

  #isTooMuchWaiting(): boolean {
    const own = this.waiting
    if (own <= USUAL_WAITING) return false
    const all = this.#state.webSockets.values().reduce((sum, socket) => sum + socket.waiting, 0)
    return own > WAITING_LIMIT || all > ALL_WAITING_LIMIT
  }

  /** Closes the client's socket with a reason, and cuts the app's off, whatever waits there. */
  #refuse(reason: string): void {
    const client = this.#client
    this.#client = null
    // The client's socket may not be open yet.
    this.#appClose ??= { code: TOO_BIG, reason }
    client?.close(TOO_BIG, reason)
    this.#app.terminate()
    this.#releaseAll()
  }

  /** Ends both sockets, because the site closes, or because the client does not read. */
  #terminate(): void {
    this.#app.terminate()
    this.#client?.terminate()
    this.#releaseAll()
  }

  #releaseAll(): void {
    for (const release of this.#release.splice(0)) release()
  }
}

function closeSocket(socket: Socket | Bun.WebSocket, code: number, reason: string): void {
  if (code === NO_CODE) socket.close()
  else if (code === ABNORMAL) socket.terminate()
  else socket.close(code, reason)
}
