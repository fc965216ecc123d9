import { type AppAddress, type HealthResult, HOSTS } from './health.ts'

type Hosts = readonly AppAddress['host'][]

/** How long what takes, in milliseconds of real time: how fast a program starts goes by no other clock. */
export interface HealthTiming {
  /** In all, until an app must have answered well. */
  readonly limitMs: number
  /** Before other ports than the one in PORT are looked for. */
  readonly patienceMs: number
  /** How long an app must go without listening on PORT, while it answers elsewhere, before it is taken to ignore PORT. */
  readonly otherPortMs: number
}

/** The usual times. */
export const HEALTH_TIMING: HealthTiming = { limitMs: 60_000, patienceMs: 400, otherPortMs: 600 }

/** Pauses between two questions, milliseconds: short at first, for apps that start at once. */
const FIRST_PAUSES = [5, 10, 10, 20, 20, 40, 40, 80]
const PAUSE_MS = 100

/** How long an answer may take. Servers for developing build at the first question. */
const RESPONSE_MS = 30_000

/** How often the app's ports are looked up, milliseconds. */
const LOOK_MS = 200

/** So much longer than a page must something that is none (404) be the only answer. */
const NO_PAGE_FACTOR = 5

/** What a search is made of. */
export interface HealthSearchOptions {
  /** The port that the app was given. */
  assignedPort: number
  /** Where its processes listen; null where that cannot be seen. */
  listening(): Promise<readonly AppAddress[] | null>
  check(port: number, hosts: Hosts, timeoutMs: number, signal: AbortSignal): Promise<HealthResult>
  path: string
  timing: HealthTiming
}

/** Looks for the port on which an app answers: the one that it was given, or the one that it listens on instead. */
export class HealthSearch {
  readonly #options: HealthSearchOptions
  readonly #began = performance.now()
  /** Other ports, and since when they answer. */
  readonly #others = new Map<number, number>()
  #lookedAt = 0
  #last: { port: number; result: HealthResult } | null = null

  constructor(options: HealthSearchOptions) {
    this.#options = options
  }

  /** Resolves with where the app answers, or with the reason why it did not in time; early where the signal fires. */
  async run(signal: AbortSignal): Promise<AppAddress | string> {
    const { assignedPort, timing } = this.#options
    for (let round = 0; !signal.aborted; round += 1) {
      const result = await this.#checkAssignedPort(signal)
      const found = this.#addressIfHealthy(assignedPort, result)
      if (found !== null) return found
      const other = result.kind === 'refused' ? await this.#checkOtherPorts(signal) : null
      if (other !== null) return other
      if (this.#elapsed() >= timing.limitMs) break
      await pause(FIRST_PAUSES[round] ?? PAUSE_MS, signal)
    }
    return this.#explain()
  }

  #elapsed(): number {
    return performance.now() - this.#began
  }

  /**
   * What the app answers at the port that it was given. What another program answers there counts as if nothing
   * listened: the port may be the app's on one address and that program's on the other. Where nothing can be seen, any
   * answer has to do.
   */
  async #checkAssignedPort(signal: AbortSignal): Promise<HealthResult> {
    const { assignedPort } = this.#options
    const result = await this.#check(assignedPort, HOSTS, signal)
    const listening = result.kind === 'refused' ? null : await this.#options.listening()
    if (result.kind === 'refused' || listening === null) return this.#record(assignedPort, result)
    const hosts = hostsOf(listening, assignedPort)
    if (hosts.length === 0) return this.#record(assignedPort, { kind: 'refused' })
    if (result.kind === 'silent' || hosts.includes(result.host)) return this.#record(assignedPort, result)
    return this.#record(assignedPort, await this.#check(assignedPort, hosts, signal))
  }

  #check(port: number, hosts: Hosts, signal: AbortSignal): Promise<HealthResult> {
    const left = Math.max(1, this.#options.timing.limitMs - this.#elapsed())
    return this.#options.check(port, hosts, Math.min(left, RESPONSE_MS), signal)
  }

  #record(port: number, result: HealthResult): HealthResult {
    // The last question is cut short by the limit: what was answered before says more than its silence.
    const isTelling =
      result.kind === 'responded' || (result.kind === 'silent' && this.#last?.result.kind !== 'responded')
    if (isTelling || this.#last === null) this.#last = { port, result }
    return result
  }

  #addressIfHealthy(port: number, result: HealthResult): AppAddress | null {
    return result.kind === 'responded' && result.status < 500 ? { host: result.host, port } : null
  }

  async #checkOtherPorts(signal: AbortSignal): Promise<AppAddress | null> {
    const { assignedPort, timing } = this.#options
    const now = this.#elapsed()
    if (now < timing.patienceMs || now - this.#lookedAt < LOOK_MS) return null
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
      return `The app listens on port ${port} but gave no HTTP answer to GET ${path} ${limit}.`
    }
    return `The app answered GET ${path} with status ${result.status}; it must be under 500 ${limit}. Set "health" in berth.json to a path that is.`
  }
}

const hostsOf = (addresses: readonly AppAddress[], port: number): Hosts =>
  addresses.filter((address) => address.port === port).map(({ host }) => host)

/** Resolves after so long, or when the signal fires. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const over = (): void => resolve()
  signal.addEventListener('abort', over)
  await promise
  clearTimeout(timer)
  signal.removeEventListener('abort', over)
}
