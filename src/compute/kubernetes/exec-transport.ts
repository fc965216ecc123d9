import { fieldsOfJson } from '../../runtime/is-object.ts'
import { within } from '../../runtime/wait.ts'
import { ProgramTransport } from '../engine/program-transport.ts'
import { ComputeError } from '../sandbox.ts'
import type { KubernetesClient, TerminableWebSocket } from './client.ts'

/**
 * The subprotocol of exec: a byte before each message names its channel. The API server passes its bytes on to the node as
 * they are; those of v5 it would decode and encode anew, which takes a third of all processor time of large responses.
 */
const PROTOCOL = 'v4.channel.k8s.io'

/** The channels of the subprotocol. */
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3 } as const

/** Bytes sent in one message: larger ones hold up those behind them. */
const PIECE_BYTES = 256 * 1024

/** Bytes that wait in the WebSocket before more are refused. */
const HIGH_WATER = 2 ** 20

/** Milliseconds between looks at how much waits: a WebSocket has no event for it. */
const DRAIN_MS = 1

/**
 * The standard input and output of a program that the cluster starts in a container. Its end says nothing of how the
 * program ended: a cluster reports success, too, when the way to the node is cut.
 */
export class ExecTransport extends ProgramTransport {
  readonly #socket: TerminableWebSocket
  readonly #opened = Promise.withResolvers<void>()
  #status = ''
  #isDraining = false
  #hasOpened = false
  #isSilent = true

  /**
   * Starts a program in a container of a pod.
   *
   * @param pod path of the pod in the API
   */
  static async start(
    client: KubernetesClient,
    pod: string,
    container: string,
    command: readonly string[],
  ): Promise<ExecTransport> {
    const query = new URLSearchParams({ container, stdin: 'true', stdout: 'true', stderr: 'true' })
    for (const argument of command) query.append('command', argument)
    const path = `${pod}/exec?${query}`
    const socket = await client.webSocket(path, PROTOCOL)
    return new ExecTransport(socket, () => client.explainRefusal(path, PROTOCOL))
  }

  /** @param explainRefusal throws why there is no connection; the WebSocket does not say it */
  private constructor(socket: TerminableWebSocket, explainRefusal: () => Promise<void>) {
    super()
    this.#socket = socket
    socket.binaryType = 'arraybuffer'
    socket.onopen = () => {
      this.#hasOpened = true
      this.#opened.resolve()
    }
    socket.onmessage = ({ data }) => this.#receive(new Uint8Array(data as ArrayBuffer))
    socket.onerror = (event) => {
      const text = 'message' in event ? String(event.message) : ''
      // Before it are the address and all arguments.
      this.#status ||= `The API server does not connect: ${text.replace(/^.* failed: /s, '')}`
    }
    socket.onclose = () => {
      if (this.#hasOpened || this.isOver) this.#fail()
      else
        void explainRefusal().then(
          () => this.#fail(),
          (refusal) => this.#fail(refusal),
        )
    }
    this.#opened.promise.catch(() => {})
  }

  /**
   * Resolves when the program has written something, or has not ended for `ms` milliseconds: an open connection does not
   * mean that it runs. Rejects with the reason if it could not be started or has ended: an `EngineRefusal` if the API server
   * or the node refuses that.
   */
  async begun(ms: number): Promise<void> {
    await this.#opened.promise
    await within(ms, this.spoken, undefined)
  }

  /** Whether the program has written nothing yet. */
  get isSilent(): boolean {
    return this.#isSilent
  }

  /** Whether there was a connection. */
  get hasOpened(): boolean {
    return this.#hasOpened
  }

  write(bytes: Uint8Array): number {
    if (this.#socket.readyState !== WebSocket.OPEN) return 0
    let sent = 0
    while (sent < bytes.length && this.#socket.bufferedAmount < HIGH_WATER) {
      const piece = bytes.subarray(sent, sent + PIECE_BYTES)
      const message = new Uint8Array(piece.length + 1)
      message[0] = CHANNEL.stdin
      message.set(piece, 1)
      this.#socket.send(message)
      sent += piece.length
    }
    if (sent < bytes.length) void this.#drain()
    return sent
  }

  terminate(): void {
    this.#socket.terminate()
    this.#fail()
  }

  #fail(cause: unknown = new ComputeError(this.reason)): void {
    this.#opened.reject(cause)
    this.end(cause)
  }

  protected get reason(): string {
    return this.errors || this.#status || 'The connection was closed.'
  }

  #receive(message: Uint8Array): void {
    const content = message.subarray(1)
    // The server begins with an empty message on each channel.
    if (content.length === 0) return
    switch (message[0]) {
      case CHANNEL.stdout:
        this.#isSilent = false
        this.takeOutput(content)
        break
      case CHANNEL.stderr:
        this.takeErrors(content)
        break
      case CHANNEL.status:
        this.#status = reasonOf(Buffer.from(content).toString())
    }
  }

  /** Reports that there is room, never within the `write` that found none. */
  async #drain(): Promise<void> {
    if (this.#isDraining) return
    this.#isDraining = true
    do await Bun.sleep(DRAIN_MS)
    while (this.#socket.bufferedAmount > HIGH_WATER / 2 && this.#socket.readyState === WebSocket.OPEN)
    this.#isDraining = false
    this.drained()
  }
}

/** Returns the message of a Status object. */
function reasonOf(text: string): string {
  const { message, status } = fieldsOfJson(text)
  if (status === 'Success') return 'The program has ended, or the way to its node was cut.'
  // Without the address and all arguments, which are in it.
  return typeof message === 'string' ? message.replace(/^.*"https?:[^"]*": /s, '') : text
}
