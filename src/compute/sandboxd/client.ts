import { isObject } from '../../runtime/is-object.ts'
import { LONGEST_TIMER_MS, within } from '../../runtime/wait.ts'
import { ComputeError } from '../sandbox.ts'
import { FrameChannel } from './channel.ts'
import { type ClientCall, ClientCalls } from './client-calls.ts'
import { NOT_RUNNING, type SandboxdCommand, SandboxdExecution } from './client-execution.ts'
import {
  type CallName,
  decodeJson,
  decodeNumber,
  type ExitReport,
  FRAME,
  MAX_FROM_SANDBOXD,
  MOST_WAITING,
  ProtocolError,
  type SandboxdConfiguration,
} from './protocol.ts'
import type { FrameTransport } from './transport.ts'

/** Milliseconds after a command's timeout, or its cancellation, at which sandboxd should have ended it. */
const OVERDUE_MS = 10_000

/** How often that time may pass again until the command ends, or until it begins. @bound program */
const MOST_OVERDUE = 6

/** Longest version that is taken from sandboxd. @bound program */
const MAX_VERSION = 100

/** Calls under way, at most: those that were given up too, since sandboxd ends each. @bound program */
export const MOST_CALLS = 10_000

/** Milliseconds that sandboxd has to answer a ping. */
const PONG_MS = 5_000

/** The same over a transport that may be interrupted, which notices that itself by then. */
const RESUMED_PONG_MS = 30_000

/** How a dead peer is noticed on a carrier that does not report it, such as a connection to another machine. */
export interface KeepAlive {
  /** Milliseconds between two pings. */
  everyMs: number
  /** Milliseconds without a frame after which the peer counts as dead, on both ends; more than twice `everyMs`. */
  silenceMs: number
}

/** A peer that is gone is noticed within 15 s. */
export const KEEP_ALIVE: KeepAlive = { everyMs: 5_000, silenceMs: 15_000 }

/**
 * Berth's end of the connection to sandboxd. Input is not trusted: a command may have taken sandboxd over. Any violation
 * of the protocol closes the connection and so ends the sandbox. A frame that carries nothing and answers nothing is one
 * too: no number of them would be too many.
 */
export class SandboxdClient {
  readonly #executions = new Map<number, SandboxdExecution>()
  readonly #ready = Promise.withResolvers<string>()
  readonly #closed = Promise.withResolvers<string>()
  readonly #timers = new Map<number, Timer>()
  /** Begin the commands that were asked for while none may begin; null while any may. */
  #held: (() => void)[] | null = null
  readonly #channel: FrameChannel
  readonly #calls: ClientCalls
  /** Resolves pending pings, in the order in which they were sent. */
  readonly #pongs: Array<() => void> = []
  readonly #overdueMs: number
  #lastId = 0
  #isReady = false
  #over = false
  #heardAt = 0
  #pings: Timer | null = null

  /**
   * Connects over a transport, which belongs to the connection from here on.
   *
   * @param keepAlive null if the transport itself reports that the peer is gone
   * @param overdueMs milliseconds after a command's timeout, or its cancellation, at which sandboxd should have ended it
   */
  static async open(
    transport: FrameTransport,
    keepAlive: KeepAlive | null = null,
    overdueMs = OVERDUE_MS,
  ): Promise<SandboxdClient> {
    const connection = new SandboxdClient(transport, overdueMs)
    await connection.#channel.open()
    if (keepAlive !== null) connection.#keepAlive(keepAlive)
    return connection
  }

  private constructor(transport: FrameTransport, overdueMs: number) {
    this.#overdueMs = overdueMs
    this.#channel = new FrameChannel({
      transport,
      maxPayload: MAX_FROM_SANDBOXD,
      streamed: FRAME.data,
      mostWaiting: MOST_WAITING,
      onFrame: (kind, id, payload) => this.#receive(kind, id, payload),
      onClosed: (reason) => this.close(reason ?? 'sandboxd ended.'),
      onBroken: (error) => this.close(`sandboxd broke the protocol: ${error}`),
    })
    this.#calls = new ClientCalls(this.#channel)
    // Nothing may be waiting for it if sandboxd ends early.
    this.#ready.promise.catch(() => {})
  }

  /** Resolves with the reason when the connection is over. */
  get closed(): Promise<string> {
    return this.#closed.promise
  }

  /** Whether it is over. */
  get over(): boolean {
    return this.#over
  }

  /** Commands under way. */
  get executions(): Iterable<SandboxdExecution> {
    return this.#executions.values()
  }

  /** How many commands are under way. */
  get busy(): number {
    return this.#executions.size
  }

  /** How many calls are under way. */
  get calls(): number {
    return this.#calls.size
  }

  /** Sends the configuration; resolves to sandboxd's version when that takes commands. Throws `ComputeError`. */
  async configure(configuration: SandboxdConfiguration): Promise<string> {
    this.#channel.sendJson(FRAME.configure, 0, configuration)
    return this.#ready.promise
  }

  /** Starts a command. Throws `ComputeError` when the connection is over or interrupted. */
  exec(command: SandboxdCommand): SandboxdExecution {
    this.#checkConnection()
    this.#lastId = (this.#lastId + 1) >>> 0
    const id = this.#lastId
    const execution = new SandboxdExecution(id, command, this.#channel, (graceMs) =>
      this.#watch(id, graceMs + this.#overdueMs),
    )
    this.#executions.set(id, execution)
    const begin = (): void => {
      if (execution.over) return
      execution.begin()
      if (command.timeoutMs !== null) this.#watch(id, command.timeoutMs + this.#overdueMs)
      this.#expectStart(execution)
    }
    if (this.#held === null) begin()
    else this.#held.push(begin)
    return execution
  }

  /** Lets no further command begin until the returned function is called. */
  hold(): () => void {
    const held: (() => void)[] = []
    this.#held = held
    return () => {
      if (this.#held === held) this.#held = null
      for (const begin of held.splice(0)) begin()
    }
  }

  /** Calls a service of sandboxd. Throws `ComputeError` when the connection is over or interrupted. */
  call(name: CallName, input: object): ClientCall {
    if (this.#calls.size === MOST_CALLS) this.close('sandboxd ends no calls.')
    this.#checkConnection()
    this.#lastId = (this.#lastId + 1) >>> 0
    return this.#calls.start(this.#lastId, name, input)
  }

  /** Asks sandboxd to end all commands and itself. */
  shutdown(): void {
    this.#channel.send(FRAME.shutdown, 0)
    // The connection may be closed next.
    this.#channel.flush()
  }

  /** Resolves when sandboxd has processed everything it was sent before, or is gone. */
  async drained(): Promise<void> {
    if (this.#over) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#pongs.push(resolve)
    this.#channel.send(FRAME.ping, 0)
    await promise
  }

  /** Ends the connection. Commands that have started count as killed; the others are not started. */
  close(reason: string): void {
    if (this.#over) return
    this.#over = true
    const cause = this.#isInterrupted ? reason : null
    this.#channel.close()
    clearInterval(this.#pings ?? undefined)
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
    this.#ready.reject(new ComputeError(`The sandbox did not start: ${reason}`))
    for (const execution of this.#executions.values()) execution.abandon(cause)
    this.#executions.clear()
    this.#calls.close(reason)
    for (const pong of this.#pongs.splice(0)) pong()
    this.#closed.resolve(reason)
  }

  get #isInterrupted(): boolean {
    return typeof this.#channel.interruption === 'string'
  }

  #checkConnection(): void {
    if (this.#over) throw new ComputeError(NOT_RUNNING)
    const { interruption } = this.#channel
    if (typeof interruption === 'string')
      throw new ComputeError(`The server cannot be reached at present. ${interruption}`)
  }

  #receive(kind: number, id: number, payload: Uint8Array): void {
    if (this.#over) return
    this.#heardAt = performance.now()
    if (kind === FRAME.ready) this.#receiveReady(payload)
    else if (kind === FRAME.pong) this.#receivePong()
    else if (!this.#calls.receive(id, kind, payload)) this.#receiveOf(id, kind, payload)
  }

  #receiveReady(payload: Uint8Array): void {
    if (this.#isReady) throw new ProtocolError('sandboxd is ready a second time')
    this.#isReady = true
    this.#ready.resolve(new TextDecoder().decode(payload.subarray(0, MAX_VERSION)))
  }

  #receivePong(): void {
    const pong = this.#pongs.shift()
    if (pong === undefined) throw new ProtocolError('a pong comes without a ping')
    pong()
  }

  #receiveOf(id: number, kind: number, payload: Uint8Array): void {
    const execution = this.#executions.get(id)
    if (execution === undefined)
      throw new ProtocolError(`a frame is about execution ${id}, which does not run`)
    if (kind === FRAME.stdout) execution.receive('stdout', payload)
    else if (kind === FRAME.stderr) execution.receive('stderr', payload)
    else if (kind === FRAME.typed) execution.typed(decodeNumber(payload))
    else if (kind === FRAME.started) execution.startedAs(decodeNumber(payload))
    else {
      if (kind === FRAME.exit) execution.finish(exitReport(decodeJson(payload)))
      else if (kind === FRAME.failure) execution.fail(failureReport(decodeJson(payload)))
      else throw new ProtocolError(`there is no frame of kind ${kind}`)
      this.#executions.delete(id)
      this.#unwatch(id)
    }
  }

  /** Sends pings, and ends the connection when nothing has come for too long. */
  #keepAlive({ everyMs, silenceMs }: KeepAlive): void {
    this.#heardAt = performance.now()
    this.#pings = setInterval(() => {
      if (performance.now() - this.#heardAt > silenceMs) this.close('sandboxd does not respond.')
      else void this.drained()
    }, everyMs)
    this.#pings.unref()
  }

  /** Ends the sandbox if a command does not begin, whether sandboxd lives or was stopped. */
  #expectStart(execution: SandboxdExecution): void {
    const late = (): void => {
      if (this.#isInterrupted) timer.refresh()
      else this.close('sandboxd did not begin a command.')
    }
    const timer = setTimeout(late, this.#overdueMs * MOST_OVERDUE)
    timer.unref()
    const cancel = (): void => clearTimeout(timer)
    void execution.pid.then(cancel, cancel)
  }

  /**
   * Ends the sandbox if a command is overdue, and sandboxd does not respond, for example because it was stopped, or does
   * not end the command.
   */
  #watch(id: number, ms: number, times = 0): void {
    if (ms > LONGEST_TIMER_MS) return
    this.#unwatch(id)
    const timer = setTimeout(() => void this.#ping(id, times), ms)
    timer.unref()
    this.#timers.set(id, timer)
  }

  #unwatch(id: number): void {
    clearTimeout(this.#timers.get(id))
    this.#timers.delete(id)
  }

  /** @param times how often the command was found overdue before */
  async #ping(id: number, times: number): Promise<void> {
    const pongMs = this.#channel.interruption === undefined ? PONG_MS : RESUMED_PONG_MS
    const alive =
      this.#isInterrupted ||
      (await within(
        pongMs,
        this.drained().then(() => true),
        false,
      ))
    const execution = this.#executions.get(id)
    if (!alive && !this.#isInterrupted) this.close('sandboxd does not respond.')
    else if (execution === undefined) return
    else if (this.#isInterrupted) this.#watch(id, this.#overdueMs, times)
    else if (execution.isDelivering) this.#watch(id, this.#overdueMs)
    else if (times === MOST_OVERDUE) this.close('sandboxd did not end a command.')
    else this.#watch(id, this.#overdueMs, times + 1)
  }
}

function exitReport(value: unknown): ExitReport {
  const { exitCode, timedOut, truncated } = fields(value)
  if (typeof exitCode !== 'number' || !Number.isInteger(exitCode) || exitCode < 0 || exitCode > 255) {
    throw new ProtocolError('An exit frame holds no exit code.')
  }
  return { exitCode, timedOut: timedOut === true, truncated: truncated === true }
}

function failureReport(value: unknown): string {
  const { message } = fields(value)
  if (typeof message !== 'string') throw new ProtocolError('A failure frame holds no message.')
  return message.slice(0, 1000)
}

function fields(value: unknown): Record<string, unknown> {
  if (!isObject(value)) throw new ProtocolError('A frame holds no object.')
  return value
}
