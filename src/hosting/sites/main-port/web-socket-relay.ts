import { closeSync, constants, openSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { DialedConnection, DialHandlers } from '../../../compute/sandbox.ts'
import { MAX_MESSAGE_BYTES } from '../../../http/web-socket.ts'
import { makeTemporary, removeTemporary } from '../../../storage/data-directory.ts'
import type { AppPort } from '../app-port.ts'
import { BufferedWriter } from '../buffered-writer.ts'
import { MessageSizes } from './message-sizes.ts'

/**
 * A Unix socket that accepts one connection and joins it to one with an app's port. Bun's `WebSocket` opens its
 * connection itself, and cannot reach a port inside a server.
 */
export class WebSocketRelay implements DialHandlers {
  readonly #port: AppPort
  readonly #onTooLarge: () => void
  readonly #path: string
  readonly #sizes = new MessageSizes(MAX_MESSAGE_BYTES)
  #unlisten: (() => void) | null
  #client: End | null = null
  #app: End | null = null

  /**
   * Begins to listen.
   *
   * @param onTooLarge called when the app begins a message that is too large, of which nothing is passed on
   * @throws StartupError if the socket cannot be created
   */
  constructor(port: AppPort, onTooLarge: () => void) {
    this.#port = port
    this.#onTooLarge = onTooLarge
    const directory = makeTemporary(tmpdir(), 'berth-websocket-')
    // A path by descriptor is short and contains no colons, unlike that of the directory.
    const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY)
    this.#path = `/proc/self/fd/${fd}/app`
    const listener = Bun.listen({ unix: this.#path, socket: this.#clientEvents() })
    this.#unlisten = () => {
      listener.stop()
      closeSync(fd)
      removeTemporary(directory)
    }
  }

  /** Returns the URL of a WebSocket. @param target path and query @throws SyntaxError if it would name another socket */
  url(target: string): string {
    const url = `ws+unix://${this.#path}:${target}`
    if (!URL.parse(url)?.pathname.startsWith(`${this.#path}:/`))
      throw new SyntaxError(`not a path: ${target}`)
    return url
  }

  /**
   * Stops listening. An accepted connection stays open until one of its ends closes. Further calls have no effect.
   */
  close(): void {
    this.#unlisten?.()
    this.#unlisten = null
  }

  opened(connection: DialedConnection): void {
    this.#app = new End(connection)
    this.#client?.connection.resume()
    if (this.#client === null) connection.end()
  }

  data(chunk: Buffer): void {
    if (!this.#sizes.exceeds(chunk)) {
      forward(chunk, this.#app, this.#client)
      return
    }
    this.#app?.connection.terminate()
    this.#onTooLarge()
  }

  drain(): void {
    this.#app?.drain(this.#client)
  }

  closed(): void {
    this.#app = null
    this.#client?.endAfterFlush()
  }

  #clientEvents(): Bun.SocketHandler {
    return {
      open: (socket) => {
        this.close()
        this.#client = new End(socket)
        socket.pause()
        const { server, port, host } = this.#port
        server.dial(port, host, this).catch(() => socket.terminate())
      },
      data: (_, chunk) => forward(chunk, this.#client, this.#app),
      drain: () => this.#client?.drain(this.#app),
      close: () => {
        this.#client = null
        this.#app?.endAfterFlush()
      },
      error: () => {},
    }
  }
}

/** One end of a joined pair of connections. */
class End {
  readonly writer: BufferedWriter<DialedConnection>
  #ending = false

  constructor(readonly connection: DialedConnection) {
    this.writer = new BufferedWriter(connection)
  }

  /** Writes buffered bytes, then resumes reading from the other end. */
  drain(other: End | null): void {
    if (!this.writer.flush()) return
    if (this.#ending) this.connection.end()
    else other?.connection.resume()
  }

  /** Closes it once everything is written. */
  endAfterFlush(): void {
    this.#ending = true
    if (this.writer.empty) this.connection.end()
  }
}

function forward(chunk: Buffer, from: End | null, to: End | null): void {
  if (to !== null && !to.writer.write(chunk, 0, chunk.length, false)) from?.connection.pause()
}
