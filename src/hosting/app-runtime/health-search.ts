import type { CommandActivity } from '../../compute/sandbox.ts'
import { pause } from '../../runtime/wait.ts'
import { type AppAddress, type HealthResult, HOSTS, RetryDelays } from './health.ts'
import { OtherPorts } from './other-ports.ts'

type Hosts = readonly AppAddress['host'][]

/** Time limits, in milliseconds of real time. Berth's clock does not affect how fast a program starts. */
export interface HealthTiming {
  /** For the first successful response. */
  readonly limitMs: number
  /** For which an app must have printed nothing and hardly used a processor before a port other than PORT counts. */
  readonly quietMs: number
  /** After its start when such a port counts in any case. */
  readonly otherPortMs: number
  /** Between requests to PORT while the app responds elsewhere. */
  readonly followMs: number
  /** For which a worker must have run. */
  readonly steadyMs: number
}

/** Default time limits. */
export const HEALTH_TIMING: HealthTiming = {
  limitMs: 60_000,
  quietMs: 2000,
  otherPortMs: 15_000,
  followMs: 500,
  steadyMs: 2000,
}

/** Time limit of a response, in milliseconds. Development servers build at the first request. */
const RESPONSE_MS = 30_000

/** Milliseconds between look-ups of the app's ports. */
const LOOK_MS = 200

/** Responses with a status of 500 and above after which that is reported. */
const REPORTED_AFTER = 3

/** The options of a `HealthSearch`. */
interface HealthSearchOptions {
  /** The port assigned to the app. */
  assignedPort: number
  /** Whether the app can respond on no other port. */
  isOnlyPort: boolean
  /** Returns what the app's processes do. */
  activity(): Promise<CommandActivity>
  /** Returns the milliseconds since the app printed something last, or since its start. */
  sinceOutput(): number
  check(port: number, hosts: Hosts, timeoutMs: number, signal: AbortSignal): Promise<HealthResult>
  /** Describes an error with its likely cause: `status 500. Its log says why.`, and what else responds. */
  describeError(status: number, address: AppAddress): Promise<string>
  path: string
  timing: HealthTiming
  /** Called once, as soon as the app is seen to listen. */
  onListening(): void
  /** Called once for each status of 500 and above that the app responds with repeatedly. */
  onUnhealthy(status: number, port: number): void
}

/**
 * Finds the port on which an app responds: the assigned one, whenever it opens, or one that it listens on instead if
 * nothing better is to be expected.
 */
export class HealthSearch {
  readonly #options: HealthSearchOptions
  readonly #began = performance.now()
  #hasListened = false
  #hasDebugger = false
  #last: { port: number; result: HealthResult } | null = null
  #unhealthy = 0
  readonly #reported = new Set<number>()

  constructor(options: HealthSearchOptions) {
    this.#options = options
  }

  /**
   * Resolves with the address on which the app responds, or with the reason why it did not in time. Resolves early if
   * the signal aborts.
   */
  async run(signal: AbortSignal): Promise<AppAddress | string> {
    const { assignedPort, isOnlyPort, timing } = this.#options
    const delays = new RetryDelays()
    const ended = new AbortController()
    const others = this.#otherPorts(AbortSignal.any([signal, ended.signal]))
    let lookedAt = 0
    try {
      while (!signal.aborted) {
        const timeoutMs = Math.max(1, Math.min(timing.limitMs - this.#elapsed(), RESPONSE_MS))
        const result = this.#record(assignedPort, await this.#checkAssignedPort(timeoutMs, signal))
        if (isHealthy(result)) return { host: result.host, port: assignedPort }
        if (result.kind === 'refused' && !isOnlyPort && this.#elapsed() - lookedAt >= LOOK_MS) {
          lookedAt = this.#elapsed()
          const activity = await this.#options.activity()
          this.#hasDebugger = activity.listening?.some(({ isDebugger }) => isDebugger) ?? false
          const other = others.look(activity, assignedPort)
          if (other !== null) return other
        }
        if (this.#elapsed() >= timing.limitMs) break
        const left = Math.max(0, timing.limitMs - this.#elapsed())
        await pause(Math.min(delays.next(result.kind !== 'refused'), left), signal)
      }
      return await this.#explain()
    } finally {
      ended.abort()
    }
  }

  /** Resolves with the assigned port's address as soon as the app responds there too; null if the signal aborts. */
  async follow(signal: AbortSignal): Promise<AppAddress | null> {
    const { assignedPort, timing } = this.#options
    const delays = new RetryDelays()
    while (!signal.aborted) {
      const result = await this.#checkAssignedPort(RESPONSE_MS, signal)
      if (isHealthy(result)) return { host: result.host, port: assignedPort }
      await pause(result.kind === 'refused' ? timing.followMs : delays.next(true), signal)
    }
    return null
  }

  #otherPorts(signal: AbortSignal): OtherPorts {
    const { timing, sinceOutput } = this.#options
    return new OtherPorts({
      quietMs: timing.quietMs,
      latestMs: timing.otherPortMs,
      check: async (port, hosts, timeoutMs) =>
        this.#record(port, await this.#options.check(port, hosts, timeoutMs, signal)),
      times: () => ({ sinceStart: this.#elapsed(), sinceOutput: sinceOutput() }),
    })
  }

  #elapsed(): number {
    return performance.now() - this.#began
  }

  /**
   * Checks the assigned port. Ignores another program's response: the port may be the app's on one address and that
   * program's on the other. Accepts any response if sockets cannot be seen.
   */
  async #checkAssignedPort(timeoutMs: number, signal: AbortSignal): Promise<HealthResult> {
    const { assignedPort, check } = this.#options
    const result = await check(assignedPort, HOSTS, timeoutMs, signal)
    if (result.kind === 'refused') return result
    const { listening } = await this.#options.activity()
    if (listening === null) return result
    const hosts = listening.filter(({ port }) => port === assignedPort).map(({ host }) => host)
    // One that ends during the check listens no more.
    if (result.kind === 'silent') this.#noteListening()
    if (hosts.length === 0) return { kind: 'refused' }
    if (result.kind === 'silent' || hosts.includes(result.host)) return result
    return check(assignedPort, hosts, timeoutMs, signal)
  }

  #record(port: number, result: HealthResult): HealthResult {
    if (result.kind === 'responded' && result.isInspector) this.#hasDebugger = true
    if (result.kind === 'refused' || (result.kind === 'responded' && result.isInspector)) return result
    this.#noteListening()
    // The time limit cuts the last check short, so an earlier response is more informative than its silence.
    const isInformative = result.kind === 'responded' || this.#last?.result.kind !== 'responded'
    if (isInformative) this.#last = { port, result }
    if (result.kind === 'responded' && result.status >= 500) this.#noteUnhealthy(result.status, port)
    return result
  }

  #noteListening(): void {
    if (!this.#hasListened) this.#options.onListening()
    this.#hasListened = true
  }

  #noteUnhealthy(status: number, port: number): void {
    this.#unhealthy += 1
    if (this.#unhealthy < REPORTED_AFTER || this.#reported.has(status)) return
    this.#reported.add(status)
    this.#options.onUnhealthy(status, port)
  }

  async #explain(): Promise<string> {
    const { assignedPort, path, timing } = this.#options
    const limit = `within ${timing.limitMs / 1000} s`
    if (this.#last === null) {
      const besides = this.#hasDebugger ? ', except one for a debugger' : ''
      return `The app did not listen on a port ${limit}${besides}. It must listen on the port in the variable PORT (here ${assignedPort}) on 127.0.0.1. ${WORKER}`
    }
    const { port, result } = this.#last
    if (result.kind !== 'responded') {
      return `The app listens on port ${port} but sent no HTTP response to GET ${path} ${limit}.`
    }
    const error = await this.#options.describeError(result.status, { host: result.host, port })
    return `The app responds to GET ${path} with ${error} It has to respond with a status under 500 ${limit}; if that path is meant to fail, name another as "health" in berth.json.`
  }
}

/** What helps a program that has no port on purpose. */
const WORKER = 'If it is a worker, which answers no requests, put "kind": "worker" into berth.json.'

const isHealthy = (result: HealthResult): result is Extract<HealthResult, { kind: 'responded' }> =>
  result.kind === 'responded' && result.status < 500
