import { CallStream } from '../../../src/compute/sandboxd/call-stream.ts'
import { FrameChannel } from '../../../src/compute/sandboxd/channel.ts'
import {
  type CallRequest,
  decodeJson,
  encodeNumber,
  FRAME,
  isCallFrame,
  MAX_TO_SANDBOXD,
} from '../../../src/compute/sandboxd/protocol.ts'
import type { FrameTransport } from '../../../src/compute/sandboxd/transport.ts'
import { VERSION } from '../../../src/runtime/version.ts'

/** What calls respond that the stand-in carries out. Others fail, such as the reading of a file, since it has none. */
const RESULTS: Readonly<Record<string, () => unknown>> = {
  usage: () => 0,
  occupied: () => false,
  write: () => null,
  entries: () => null,
  processes: () => ({ at: performance.now() }),
  consumption: () => ({
    ...{ at: Math.round(performance.now()), cpuMs: Math.round(performance.now() / 2) },
    ...{ memoryBytes: 5_000_000, processes: 2 },
  }),
}

/** The pid of every command. */
const PID = 2

/**
 * Stands in for a server's sandboxd where thousands are wanted: it is ready, every command ends at once with 0, and its
 * workspace is empty.
 */
export class StandIn {
  readonly #channel: FrameChannel
  readonly #calls = new Map<number, CallStream>()

  /** @param ended called when berth has asked it to end, or is gone */
  constructor(transport: FrameTransport, ended: () => void) {
    this.#channel = new FrameChannel({
      transport,
      maxPayload: MAX_TO_SANDBOXD,
      onFrame: (kind, id, payload) => {
        if (kind === FRAME.shutdown) ended()
        else this.#receive(kind, id, payload)
      },
      onClosed: ended,
      onBroken: ended,
    })
  }

  /** Begins to read. */
  open(): Promise<void> {
    return this.#channel.open()
  }

  #receive(kind: number, id: number, payload: Uint8Array): void {
    if (kind === FRAME.configure) this.#channel.send(FRAME.ready, 0, Buffer.from(VERSION))
    else if (kind === FRAME.ping) this.#channel.send(FRAME.pong, 0)
    else if (kind === FRAME.spawn) {
      this.#channel.send(FRAME.started, id, encodeNumber(PID))
      this.#channel.sendJson(FRAME.exit, id, { exitCode: 0, timedOut: false, truncated: false })
    } else if (kind === FRAME.call) this.#call(id, decodeJson(payload) as CallRequest)
    else if (isCallFrame(kind)) this.#receiveOf(id, kind, payload)
  }

  #call(id: number, { name }: CallRequest): void {
    // It waits for a connection, and none comes.
    if (name === 'accept' || name in RESULTS) this.#calls.set(id, new CallStream(this.#channel, id))
    if (name in RESULTS) {
      this.#channel.sendJson(FRAME.result, id, RESULTS[name]?.())
      this.#calls.get(id)?.end()
    } else if (name !== 'accept')
      this.#channel.sendJson(FRAME.error, id, { code: 'ENOENT', message: `There is nothing to ${name}.` })
  }

  #receiveOf(id: number, kind: number, payload: Uint8Array): void {
    const stream = this.#calls.get(id)
    if (stream === undefined) return
    if (kind !== FRAME.drop) stream.receive(kind, payload)
    if (kind !== FRAME.drop && !stream.over) return
    this.#calls.delete(id)
    this.#channel.send(FRAME.drop, id)
  }
}
