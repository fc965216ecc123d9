import type { AcceptedConnection, ProgramSocket } from '../local/network/project-ports.ts'
import { type DialedConnection, type DialHandlers, DialRefused, type LoopbackHost } from '../sandbox.ts'
import type { SandboxdClient } from '../sandboxd/client.ts'
import { CallError, type ClientCall } from '../sandboxd/client-calls.ts'

/** Opens a connection to a port inside a server as a call of sandboxd. See `Sandbox.dial`. */
export async function dialThrough(
  client: SandboxdClient,
  port: number,
  host: LoopbackHost,
  handlers: DialHandlers,
): Promise<DialedConnection> {
  const call = client.call('dial', { port, host })
  try {
    await call.result
  } catch (error) {
    throw error instanceof CallError && error.code === 'refused'
      ? new DialRefused(host, port, { cause: error })
      : error
  }
  const connection = new CalledConnection(call, handlers)
  handlers.opened(connection)
  void connection.run()
  return connection
}

/** A connection whose bytes are a call's streams. */
export class CalledConnection implements ProgramSocket {
  readonly remoteAddress = '127.0.0.1'
  readonly #call: ClientCall
  readonly #handlers: AcceptedConnection
  #paused: PromiseWithResolvers<void> | null = null
  #isDraining = false

  constructor(call: ClientCall, handlers: AcceptedConnection) {
    this.#call = call
    this.#handlers = handlers
  }

  write(bytes: Uint8Array, offset = 0, length = bytes.length - offset): number {
    const written = this.#call.stream.write(bytes, offset, length)
    if (written >= 0 && written < length) void this.#drain()
    return written
  }

  pause(): void {
    this.#paused ??= Promise.withResolvers<void>()
  }

  resume(): void {
    this.#paused?.resolve()
    this.#paused = null
  }

  end(): void {
    this.#call.stream.end()
  }

  shutdown(): void {
    this.end()
  }

  terminate(): void {
    this.#call.drop()
    this.resume()
  }

  /** Passes the bytes on that come, until the connection is closed. */
  async run(): Promise<void> {
    const { stream } = this.#call
    try {
      for (let chunk = await stream.read(); chunk !== null; chunk = await stream.read()) {
        if (this.#paused !== null) await this.#paused.promise
        this.#handlers.data(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length))
      }
      if (this.#handlers.ended !== undefined) {
        this.#handlers.ended()
        await stream.untilEnded()
      }
    } catch {
      // The call broke off, which is a reset and no end.
      this.#handlers.closed(true)
      return
    }
    stream.end()
    this.#handlers.closed(false)
  }

  async #drain(): Promise<void> {
    if (this.#isDraining) return
    this.#isDraining = true
    await this.#call.stream.writable()
    this.#isDraining = false
    this.#handlers.drain()
  }
}
