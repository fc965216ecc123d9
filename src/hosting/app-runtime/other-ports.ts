import type { CommandActivity, ListeningAddress } from '../../compute/sandbox.ts'
import { type AppAddress, type HealthResponse, type HealthResult, RetryDelays } from './health.ts'

/** Time limit of a response, in milliseconds. It doubles with each that it has cut off, to the largest one. */
const RESPONSE_MS = 1000
const MAX_RESPONSE_MS = 30_000

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
  #limitMs = RESPONSE_MS
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
    if (tookMs >= this.#limitMs) this.#limitMs = Math.min(2 * this.#limitMs, MAX_RESPONSE_MS)
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
