import { onAbort } from '../../runtime/abort.ts'
import { type AppAddress, type HealthResult, HOSTS } from './health.ts'

type Hosts = readonly AppAddress['host'][]

/** Time limits, in milliseconds of real time. Berth's clock does not affect how fast a program starts. */
export interface HealthTiming {
  /** For the first successful response. */
  readonly limitMs: number
  /** Before ports other than the one in PORT are searched. */
  readonly portGraceMs: number
  /** For which an app must respond elsewhere, without listening on PORT, before the search takes that port. */
  readonly otherPortMs: number
}

/** Default time limits. */
export const HEALTH_TIMING: HealthTiming = { limitMs: 60_000, portGraceMs: 400, otherPortMs: 600 }

/** Delays between checks, in milliseconds. The first are short, for apps that start at once. */
const FIRST_DELAYS_MS = [5, 10, 10, 20, 20, 40, 40, 80]
const PAUSE_MS = 100

/** Time limit of a response, in milliseconds. Development servers build at the first request. */
const RESPONSE_MS = 30_000

/** Milliseconds between look-ups of the app's ports. */
const PORT_POLL_MS = 200

/** Factor by which `otherPortMs` grows if the only response is a 404. */
const NO_PAGE_FACTOR = 5

/** The options of a `HealthSearch`. */
interface HealthSearchOptions {
  /** The port assigned to the app. */
  assignedPort: number
  /** Returns the addresses on which its processes listen; null if they cannot be seen. */
  listening(): Promise<readonly AppAddress[] | null>
  check(port: number, hosts: Hosts, timeoutMs: number, signal: AbortSignal): Promise<HealthResult>
  path: string
  timing: HealthTiming
  /** Called once, as soon as the app is seen to listen. */
  onListening(): void
}

/** Finds the port on which an app responds: the assigned one, or one that it listens on instead. */
export class HealthSearch {
  readonly #options: HealthSearchOptions
  readonly #began = performance.now()
  /** Time of the first response by port, for ports other than the assigned one. */
  readonly #others = new Map<number, number>()
  #lookedAt = 0
  #hasListened = false
  #last: { port: number; result: HealthResult } | null = null

  constructor(options: HealthSearchOptions) {
    this.#options = options
  }

  /**
   * Resolves with the address on which the app responds, or with the reason why it did not in time. Resolves early if
   * the signal aborts.
   */
  async run(signal: AbortSignal): Promise<AppAddress | string> {
    const { assignedPort, timing } = this.#options
    for (let round = 0; !signal.aborted; round += 1) {
      const result = await this.#checkAssignedPort(signal)
      const found = this.#addressIfHealthy(assignedPort, result)
      if (found !== null) return found
      const other = result.kind === 'refused' ? await this.#checkOtherPorts(signal) : null
      if (other !== null) return other
      if (this.#elapsed() >= timing.limitMs) break
      await pause(FIRST_DELAYS_MS[round] ?? PAUSE_MS, signal)
    }
    return this.#explain()
  }

  #elapsed(): number {
    return performance.now() - this.#began
  }

  /**
   * Checks the assigned port. Ignores another program's response: the port may be the app's on one address and that
   * program's on the other. Accepts any response if sockets cannot be seen.
   */
  async #checkAssignedPort(signal: AbortSignal): Promise<HealthResult> {
    const { assignedPort } = this.#options
    const result = await this.#check(assignedPort, HOSTS, signal)
    const listening = result.kind === 'refused' ? null : await this.#options.listening()
    if (result.kind === 'refused' || listening === null) return this.#record(assignedPort, result)
    const hosts = hostsOf(listening, assignedPort)
    // One that ends during the check listens no more.
    if (result.kind === 'silent') this.#noteListening()
    if (hosts.length === 0) return this.#record(assignedPort, { kind: 'refused' })
    if (result.kind === 'silent' || hosts.includes(result.host)) return this.#record(assignedPort, result)
    return this.#record(assignedPort, await this.#check(assignedPort, hosts, signal))
  }

  #check(port: number, hosts: Hosts, signal: AbortSignal): Promise<HealthResult> {
    const left = Math.max(1, this.#options.timing.limitMs - this.#elapsed())
    return this.#options.check(port, hosts, Math.min(left, RESPONSE_MS), signal)
  }

  #record(port: number, result: HealthResult): HealthResult {
    if (result.kind !== 'refused') this.#noteListening()
    // The time limit cuts the last check short, so an earlier response is more informative than its silence.
    const isInformative =
      result.kind === 'responded' || (result.kind === 'silent' && this.#last?.result.kind !== 'responded')
    if (isInformative || this.#last === null) this.#last = { port, result }
    return result
  }

  #noteListening(): void {
    if (!this.#hasListened) this.#options.onListening()
    this.#hasListened = true
  }

  #addressIfHealthy(port: number, result: HealthResult): AppAddress | null {
    return result.kind === 'responded' && result.status < 500 ? { host: result.host, port } : null
  }

  async #checkOtherPorts(signal: AbortSignal): Promise<AppAddress | null> {
    const { assignedPort, timing } = this.#options
    const now = this.#elapsed()
    if (now < timing.portGraceMs || now - this.#lookedAt < PORT_POLL_MS) return null
    this.#lookedAt = now
    const listening = (await this.#options.listening()) ?? []
    const ports = [...new Set(listening.map(({ port }) => port))].filter((port) => port !== assignedPort)
    for (const port of this.#others.keys()) if (!ports.includes(port)) this.#others.delete(port)
    for (const port of ports) {
      const result = this.#record(port, await this.#check(port, hostsOf(listening, port), signal))
      const found = this.#addressIfHealthy(port, result)
      if (found === null || result.kind !== 'responded') continue
      const since = this.#others.get(port) ?? now
      this.#others.set(port, since)
      const wait = result.status < 400 ? timing.otherPortMs : timing.otherPortMs * NO_PAGE_FACTOR
      if (now - since >= wait) return found
    }
    return null
  }

  #explain(): string {
    const { assignedPort, path, timing } = this.#options
    const limit = `within ${timing.limitMs / 1000} s`
    const { port, result } = this.#last ?? { port: assignedPort, result: { kind: 'refused' as const } }
    if (result.kind === 'refused') {
      return `The app did not listen on a port ${limit}. It must listen on the port in the variable PORT (here ${assignedPort}) on 127.0.0.1.`
    }
    if (result.kind === 'silent') {
      return `The app listens on port ${port} but sent no HTTP response to GET ${path} ${limit}.`
    }
    return `The app answered GET ${path} with status ${result.status}; it must be under 500 ${limit}. Set "health" in berth.json to a path that is.`
  }
}

const hostsOf = (addresses: readonly AppAddress[], port: number): Hosts =>
  addresses.filter((address) => address.port === port).map(({ host }) => host)

/** Resolves after `ms` milliseconds, or when the signal aborts. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  using _abort = onAbort(signal, resolve)
  await promise
  clearTimeout(timer)
}
