import { fieldsOf } from '../../runtime/is-object.ts'
import { ComputeError } from '../sandbox.ts'
import { CallStream } from './call-stream.ts'
import type { FrameChannel } from './channel.ts'
import { type CallName, type CallRequest, decodeJson, FRAME, isCallFrame, ProtocolError } from './protocol.ts'

/** Longest text of an error that is taken from sandboxd. @bound program */
const MAX_TEXT = 1000

/** sandboxd's answer to a call that it could not carry out. */
export class CallError extends Error {
  override readonly name = 'CallError'

  /** @param code what kind of error, as the service names it; the text is sandboxd's */
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** A call to a service of sandboxd. What it answers is not to be trusted: check it. */
export class ClientCall {
  readonly stream: CallStream
  /** Resolves with the answer, before the stream's bytes. Rejects with `CallError` or `ComputeError`. */
  readonly result: Promise<unknown>
  readonly #settle: { resolve(value: unknown): void; reject(error: Error): void }
  readonly #onDrop: () => void
  /** It was dropped, and what is still under way is ignored. */
  #dropped = false
  #answered = false

  constructor(stream: CallStream, onDrop: () => void) {
    this.stream = stream
    this.#onDrop = onDrop
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.result = promise
    this.#settle = { resolve, reject }
    // Not every caller waits for it to the end.
    promise.catch(() => {})
  }

  /** Gives the call up; its reads and writes fail. Has no effect on one that is over. */
  drop(): void {
    if (this.#dropped || this.stream.over) return
    this.#dropped = true
    this.#onDrop()
    this.fail(new ComputeError('The call was given up.'))
  }

  /** Ends it with an error. */
  fail(error: Error): void {
    this.stream.fail(error)
    this.#settle.reject(error)
  }

  /** Acts on a frame. @returns whether it was the last. Throws `ProtocolError`. */
  receive(kind: number, payload: Uint8Array): boolean {
    if (kind === FRAME.drop) {
      if (!this.#dropped && !this.stream.over) throw new ProtocolError('A call is dropped that goes on.')
      return true
    }
    if (kind === FRAME.error) {
      this.fail(callError(decodeJson(payload)))
      return true
    }
    if (kind === FRAME.result) this.#receiveResult(payload)
    else this.stream.receive(kind, payload)
    return false
  }

  #receiveResult(payload: Uint8Array): void {
    if (this.#answered) throw new ProtocolError('A call is answered a second time.')
    this.#answered = true
    this.#settle.resolve(decodeJson(payload))
  }
}

/** Berth's calls over one channel. */
export class ClientCalls {
  readonly #channel: FrameChannel
  readonly #calls = new Map<number, ClientCall>()

  constructor(channel: FrameChannel) {
    this.#channel = channel
  }

  /** How many calls are under way, among them those that were given up and that sandboxd has not ended. */
  get size(): number {
    return this.#calls.size
  }

  /** Starts a call. @param id a number that no other call or command of the channel has */
  start(id: number, name: CallName, input: object): ClientCall {
    const stream = new CallStream(this.#channel, id)
    const call = new ClientCall(stream, () => this.#channel.send(FRAME.drop, id))
    this.#calls.set(id, call)
    const request: CallRequest = { name, input }
    this.#channel.sendJson(FRAME.call, id, request)
    return call
  }

  /** Acts on a frame if it is about a call; returns whether it is. Throws `ProtocolError`. */
  receive(id: number, kind: number, payload: Uint8Array): boolean {
    if (!isCallFrame(kind)) return false
    const call = this.#calls.get(id)
    if (call === undefined) throw new ProtocolError(`a frame is about call ${id}, which is not under way`)
    if (call.receive(kind, payload)) this.#calls.delete(id)
    return true
  }

  /** The channel is gone. */
  close(reason: string): void {
    for (const call of this.#calls.values()) call.fail(new ComputeError(`The sandbox is gone: ${reason}`))
    this.#calls.clear()
  }
}

function callError(value: unknown): CallError {
  const { code, message } = fieldsOf(value)
  if (typeof code !== 'string' || typeof message !== 'string') {
    throw new ProtocolError('An error frame holds no error.')
  }
  return new CallError(code.slice(0, MAX_TEXT), message.slice(0, MAX_TEXT))
}
