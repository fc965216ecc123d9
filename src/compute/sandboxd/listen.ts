import { chmodSync, rmSync } from 'node:fs'
import { within } from '../../runtime/wait.ts'
import { loadPeerOf } from '../../system/linux/peer.ts'
import { readProcess } from '../processes.ts'
import { FrameChannel } from './channel.ts'
import {
  CARRIED,
  type JoinRequest,
  KEY_BYTES,
  MAX_CARRIED,
  ResumableStream,
  sign,
  unverified,
  verify,
} from './resumable.ts'
import type { FrameTransport, TransportHandlers } from './transport.ts'

/** Connections that may be under way and have not proved anything yet; the oldest makes room for one more. @bound program */
const MOST_PENDING = 64

/** Milliseconds in which a connection has to prove that it is berth's. */
const PROOF_MS = 5_000

/** Milliseconds that sandboxd waits for its first carrier: berth may have been killed meanwhile. */
const FIRST_LEASE_MS = 60_000

/** Milliseconds that berth has to take the last bytes. */
const LAST_BYTES_MS = 1_000

/** A connection that was accepted. */
class AcceptedTransport implements FrameTransport {
  handlers: TransportHandlers | null = null

  constructor(private readonly socket: Bun.Socket<Connection>) {}

  async open(handlers: TransportHandlers): Promise<void> {
    this.handlers = handlers
  }

  write(bytes: Uint8Array): number {
    return this.socket.write(bytes)
  }

  terminate(): void {
    this.socket.terminate()
  }
}

type Connection = AcceptedTransport | undefined

/**
 * sandboxd's end of a stream that outlives its carriers. Each is a process that the engine starts in the server,
 * `__sandboxd-connect`, and that connects to this socket.
 *
 * Commands run as the same user and may connect, too. So a carrier has to prove that it brings the bytes of the berth
 * whose key this is. The first one brings the key itself: no command has been started before that, and what has no key
 * yet starts none. What commands connect is closed at once, so it cannot take the room of a carrier.
 */
export class ListeningTransport implements FrameTransport {
  readonly #path: string
  readonly #peerOf = loadPeerOf()
  readonly #pending = new Set<FrameChannel>()
  #handlers: TransportHandlers | null = null
  #stream: ResumableStream | null = null
  #key: Uint8Array | null = null
  /** What was joined last. */
  #joined: JoinRequest | null = null
  #carrier: FrameChannel | null = null
  #lease: Timer | undefined
  /** Set once sandboxd ends; resolves when the carrier is gone. */
  #finished: PromiseWithResolvers<void> | null = null

  /** @param path of the socket; what is there is replaced */
  constructor(path: string) {
    this.#path = path
  }

  async open(handlers: TransportHandlers): Promise<void> {
    this.#handlers = handlers
    this.#stream = new ResumableStream(handlers)
    rmSync(this.#path, { force: true })
    Bun.listen<Connection>({
      unix: this.#path,
      socket: {
        open: (socket) => this.#accept(socket),
        data: ({ data }, chunk) => data?.handlers?.data(chunk),
        drain: ({ data }) => data?.handlers?.drain(),
        close: ({ data }) => data?.handlers?.closed(),
        error: ({ data }) => data?.handlers?.closed(),
      },
    })
    chmodSync(this.#path, 0o600)
    this.#startLease(FIRST_LEASE_MS)
  }

  write(bytes: Uint8Array): number {
    return this.#stream?.write(bytes) ?? 0
  }

  terminate(): void {
    this.#carrier?.close()
    this.#handlers?.closed()
  }

  async finish(): Promise<void> {
    if (this.#carrier === null) return
    this.#finished = Promise.withResolvers<void>()
    this.#pump()
    await within(LAST_BYTES_MS, this.#finished.promise, null)
  }

  /** Sends what the carrier has room for, and the end behind all of it. */
  #pump(): void {
    this.#stream?.pump()
    if (this.#finished !== null && this.#stream?.isSent) this.#carrier?.send(CARRIED.end, 0)
  }

  #accept(socket: Bun.Socket<Connection>): void {
    if (descendsFrom(process.pid, this.#peerOf(socket.fd))) {
      socket.terminate()
      return
    }
    const transport = new AcceptedTransport(socket)
    socket.data = transport
    const channel: FrameChannel = new FrameChannel({
      transport,
      maxPayload: MAX_CARRIED,
      streamed: CARRIED.data,
      onFrame: (kind, _, payload) => {
        if (channel === this.#carrier) this.#stream?.receive(kind, payload)
        else if (this.#pending.has(channel)) this.#admit(channel, kind, payload)
      },
      onDrained: () => {
        if (channel === this.#carrier) this.#pump()
      },
      onClosed: () => this.#drop(channel),
      onBroken: () => this.#drop(channel),
    })
    const [oldest] = this.#pending
    if (this.#pending.size === MOST_PENDING && oldest !== undefined) this.#drop(oldest)
    this.#pending.add(channel)
    void channel.open()
    setTimeout(() => {
      if (this.#pending.has(channel)) this.#drop(channel)
    }, PROOF_MS)
  }

  /** Makes a connection the carrier, if it proves that it is berth's. One that is refused may stay until its time is over. */
  #admit(channel: FrameChannel, kind: number, payload: Uint8Array): void {
    const stream = this.#stream
    const request = kind === CARRIED.join ? this.#verified(payload) : null
    if (request === null || this.#key === null || stream === null) refuse(channel, 'Its key is another one.')
    else if (request.stream !== (this.#joined?.stream ?? request.stream)) refuse(channel, OTHER_STREAM)
    else if (request.attempt <= (this.#joined?.attempt ?? 0)) refuse(channel, 'The request was used before.')
    else if (!stream.canResume(request.received)) refuse(channel, OTHER_STREAM)
    else {
      this.#pending.delete(channel)
      const previous = this.#carrier
      this.#carrier = channel
      previous?.close()
      clearTimeout(this.#lease)
      this.#joined = request
      const { received } = stream
      channel.send(CARRIED.welcome, 0, sign(this.#key, 'welcome', { attempt: request.attempt, received }))
      stream.attach(channel, request.received, request, () => this.#drop(channel))
      this.#pump()
    }
  }

  /** Returns a request that is signed with the key, which the first request of all brings. */
  #verified(payload: Uint8Array): JoinRequest | null {
    let key = this.#key
    if (key === null) {
      const { key: text } = unverified(payload) as JoinRequest
      key = Buffer.from(text ?? '', 'base64')
      if (key.length !== KEY_BYTES) return null
    }
    const request = verify(key, 'join', payload)
    if (request === null) return null
    this.#key = key
    return request as JoinRequest
  }

  #drop(channel: FrameChannel): void {
    this.#pending.delete(channel)
    if (channel === this.#carrier) {
      this.#carrier = null
      this.#stream?.detach()
      this.#finished?.resolve()
      this.#startLease(this.#joined?.leaseMs ?? FIRST_LEASE_MS)
    }
    channel.close()
  }

  #startLease(ms: number): void {
    clearTimeout(this.#lease)
    this.#lease = setTimeout(() => this.#handlers?.closed(), ms)
  }
}

const OTHER_STREAM =
  'The server belongs to a berth that has ended, and bytes between them are lost. Remove it and start it anew.'

const refuse = (channel: FrameChannel, sentence: string): void =>
  channel.send(CARRIED.refusal, 0, new TextEncoder().encode(sentence))

/**
 * Reports whether a process descends from another one, which adopts orphans. What an engine starts in a container does
 * not: its parent is outside. One that has ended counts as a descendant.
 */
function descendsFrom(ancestor: number, pid: number): boolean {
  for (let next = pid; next !== 0; ) {
    if (next === ancestor) return true
    const parent = readProcess(next)?.parent
    if (parent === undefined) return true
    next = parent
  }
  return false
}
