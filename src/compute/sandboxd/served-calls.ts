import { codeOf, messageOf } from '../../runtime/error-info.ts'
import { WorkspaceError } from '../workspace.ts'
import { CallStream, type ServedCall } from './call-stream.ts'
import type { FrameChannel } from './channel.ts'
import { type CallRequest, decodeJson, FRAME } from './protocol.ts'
import { SERVICES, type ServiceContext } from './services.ts'

/** A call that sandboxd carries out, until it is over. */
class OpenCall implements ServedCall {
  readonly stream: CallStream
  readonly input: Readonly<Record<string, unknown>>
  readonly respond: (value: unknown) => void
  readonly #over = new AbortController()

  constructor(stream: CallStream, input: object, respond: (value: unknown) => void) {
    this.stream = stream
    this.input = input as Record<string, unknown>
    this.respond = respond
  }

  get over(): AbortSignal {
    return this.#over.signal
  }

  /** Has the service free what it holds. */
  close(): void {
    this.stream.fail(new Error('The call is over.'))
    this.#over.abort()
  }
}

/** The calls that sandboxd carries out for berth. */
export class ServedCalls {
  readonly #channel: FrameChannel
  readonly #context: ServiceContext
  readonly #calls = new Map<number, OpenCall>()
  /** Their services, until these have freed what they hold. */
  readonly #services = new Set<Promise<void>>()

  constructor(channel: FrameChannel, context: ServiceContext) {
    this.#channel = channel
    this.#context = context
  }

  /** Acts on a frame about a call. One about a call that is over is ignored: it was under way. */
  receive(kind: number, id: number, payload: Uint8Array): void {
    if (kind === FRAME.call) {
      const service = this.#serve(id, decodeJson(payload) as CallRequest)
      this.#services.add(service)
      void service.finally(() => this.#services.delete(service))
      return
    }
    const call = this.#calls.get(id)
    if (call === undefined) return
    if (kind === FRAME.drop) this.#finish(id, call)
    else {
      call.stream.receive(kind, payload)
      if (call.stream.over) this.#finish(id, call)
    }
  }

  /** Ends all calls; resolves when their services have freed what they hold, such as files that were not complete. */
  async close(): Promise<void> {
    for (const call of this.#calls.values()) call.close()
    this.#calls.clear()
    await Promise.all(this.#services)
  }

  async #serve(id: number, { name, input }: CallRequest): Promise<void> {
    const stream = new CallStream(this.#channel, id)
    const call: OpenCall = new OpenCall(stream, input, (value) => {
      // Berth may have given it up.
      if (this.#calls.get(id) === call) this.#channel.sendJson(FRAME.result, id, value)
    })
    this.#calls.set(id, call)
    try {
      await SERVICES[name](call, this.#context)
      stream.end()
      if (stream.over) this.#finish(id, call)
    } catch (error) {
      if (!this.#calls.has(id)) return
      const code = error instanceof WorkspaceError ? error.fault : (codeOf(error) ?? 'failed')
      this.#channel.sendJson(FRAME.error, id, { code, message: messageOf(error) })
      this.#calls.delete(id)
      call.close()
    }
  }

  #finish(id: number, call: OpenCall): void {
    if (!this.#calls.delete(id)) return
    this.#channel.send(FRAME.drop, id)
    call.close()
  }
}
