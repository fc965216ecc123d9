import type { CommandActivity, ListeningAddress } from '../../compute/sandbox.ts'
import { pause } from '../../runtime/wait.ts'
import { type AppAddress, type HealthResponse, type HealthResult, HOSTS, RetryDelays } from './health.ts'

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

/** First time limit of a response at another port, in milliseconds. Each that it cuts off doubles it, up to RESPONSE_MS. */
const FIRST_LIMIT_MS = 1000

/** The part of a processor that a quiet app uses at most. */
const QUIET_CPU = 0.1

/** The options of `OtherPorts`. */
interface OtherPortsOptions {
  /** Milliseconds for which an app must be quiet before a port counts. */
  quietMs: number
  /** Milliseconds after its start when a port counts in any case. */
  latestMs: number
  /** Requests the health path at a port. Never rejects. */
  check(port: number, hosts: readonly AppAddress['host'][], timeoutMs: number): Promise<HealthResult>
  /** Returns the milliseconds since the app's start, and since it printed something last. */
  times(): { sinceStart: number; sinceOutput: number }
}

/**
 * Finds out on which port an app responds that does not listen on the one it was given. Metrics, APIs and development
 * tools have ports too, and often open them first. So it waits until the app has nothing more to do, or for some seconds,
 * and prefers a page.
 */
export class OtherPorts {
  readonly #options: OtherPortsOptions
  readonly #ports = new Map<number, OtherPort>()
  /** Milliseconds between the app's start and the look at which its newest port was seen. */
  #openedAt = 0
  /** Processor time at earlier looks, oldest first. */
  #looks: Array<{ at: number; cpuMs: number }> = [{ at: 0, cpuMs: 0 }]

  constructor(options: OtherPortsOptions) {
    this.#options = options
  }

  /** Asks ports that have not responded yet, beside each other and without waiting, and returns one that counts. */
  look({ listening, cpuMs }: CommandActivity, except: number): AppAddress | null {
    const byPort = Map.groupBy(listening ?? [], ({ port }) => port)
    for (const port of this.#ports.keys()) if (!byPort.has(port)) this.#ports.delete(port)
    const { sinceStart, sinceOutput } = this.#options.times()
    for (const [port, addresses] of byPort) {
      if (port !== except && !addresses.some(({ isDebugger }) => isDebugger))
        this.#ask(port, addresses, sinceStart)
    }
    const isIdle = this.#isIdle(sinceStart, cpuMs)
    const isQuiet = Math.min(sinceOutput, sinceStart - this.#openedAt) >= this.#options.quietMs
    return (isIdle && isQuiet) || sinceStart >= this.#options.latestMs ? this.#best() : null
  }

  #ask(port: number, addresses: readonly ListeningAddress[], now: number): void {
    const known = this.#ports.get(port) ?? new OtherPort()
    if (!this.#ports.has(port)) this.#openedAt = now
    this.#ports.set(port, known)
    if (!known.isDue(now)) return
    const hosts = addresses.map(({ host }) => host)
    void known.ask((timeoutMs) => this.#options.check(port, hosts, timeoutMs), now)
  }

  /** Reports whether the app has used hardly any processor time lately. */
  #isIdle(at: number, cpuMs: number): boolean {
    const { quietMs } = this.#options
    // The latest look that is long enough ago.
    const first = Math.max(
      0,
      this.#looks.findLastIndex((look) => at - look.at >= quietMs),
    )
    this.#looks = [...this.#looks.slice(first), { at, cpuMs }]
    const [since] = this.#looks
    if (since === undefined || at - since.at < quietMs) return false
    // Less than before: a process has ended whose time nobody has inherited.
    return cpuMs >= since.cpuMs && cpuMs - since.cpuMs <= QUIET_CPU * (at - since.at)
  }

  #best(): AppAddress | null {
    const found = [...this.#ports].flatMap(([port, { response }]) => (response ? { port, response } : []))
    const [best] = found.sort((a, b) => rankOf(a.response) - rankOf(b.response) || a.port - b.port)
    return best === undefined ? null : { host: best.response.host, port: best.port }
  }
}

/** A port on which an app listens in place of the one that it was given. */
class OtherPort {
  #response: HealthResponse | null = null
  #dueAt = 0
  #limitMs = FIRST_LIMIT_MS
  readonly #delays = new RetryDelays()

  /** The response that makes it a port of the app; null until then. */
  get response(): HealthResponse | null {
    return this.#response
  }

  isDue(now: number): boolean {
    return this.#response === null && now >= this.#dueAt
  }

  async ask(check: (timeoutMs: number) => Promise<HealthResult>, now: number): Promise<void> {
    this.#dueAt = Number.POSITIVE_INFINITY
    const began = performance.now()
    const result = await check(this.#limitMs)
    const tookMs = performance.now() - began
    if (result.kind === 'responded' && result.isInspector) return
    if (result.kind === 'responded' && result.status < 500) this.#response = result
    if (tookMs >= this.#limitMs) this.#limitMs = Math.min(2 * this.#limitMs, RESPONSE_MS)
    this.#dueAt = now + tookMs + this.#delays.next(result.kind !== 'refused')
  }
}

/** Returns the rank of a response among those of other ports: pages first, ports that speak only WebSockets last. */
function rankOf({ status, isHtml }: HealthResponse): number {
  const isRedirect = status >= 300 && status < 400
  if (status < 400) return isHtml || isRedirect ? 0 : 1
  if (status === 426) return 4
  return isHtml ? 2 : 3
}
