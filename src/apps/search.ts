import type { AppAddress, HealthAnswer } from './health.ts'

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
const ANSWER_MS = 30_000

/** How often the app's ports are looked up, milliseconds. */
const LOOK_MS = 200

/** So much longer than a page must something that is none (404) be the only answer. */
const NO_PAGE_FACTOR = 5

/** What a search is made of. */
export interface SearchOptions {
  /** The port that the app was given. */
  given: number
  /** The ports on which its processes listen. */
  ports(): Promise<number[]>
  ask(port: number, timeoutMs: number, signal: AbortSignal): Promise<HealthAnswer>
  path: string
  timing: HealthTiming
}

/** Looks for the port on which an app answers: the one that it was given, or the one that it listens on instead. */
export class HealthSearch {
  readonly #options: SearchOptions
  readonly #began = performance.now()
  /** Other ports, and since when they answer. */
  readonly #others = new Map<number, number>()
  #looked = 0
  #last: { port: number; answer: HealthAnswer } | null = null

  constructor(options: SearchOptions) {
    this.#options = options
  }

  /** Resolves with where the app answers, or with the reason why it did not in time; early where the signal fires. */
  async run(signal: AbortSignal): Promise<AppAddress | string> {
    const { given, timing } = this.#options
    for (let round = 0; !signal.aborted; round += 1) {
      const answer = await this.#ask(given, signal)
      const found = this.#good(given, answer)
      if (found !== null && (await this.#isOwn(given))) return found
      const other = answer.kind === 'refused' ? await this.#lookElsewhere(signal) : null
      if (other !== null) return other
      if (this.#elapsed() >= timing.limitMs) break
      await pause(FIRST_PAUSES[round] ?? PAUSE_MS, signal)
    }
    return this.#explain()
  }

  #elapsed(): number {
    return performance.now() - this.#began
  }

  async #ask(port: number, signal: AbortSignal): Promise<HealthAnswer> {
    const left = Math.max(1, this.#options.timing.limitMs - this.#elapsed())
    const answer = await this.#options.ask(port, Math.min(left, ANSWER_MS), signal)
    if (answer.kind !== 'refused' || this.#last === null) this.#last = { port, answer }
    return answer
  }

  #good(port: number, answer: HealthAnswer): AppAddress | null {
    return answer.kind === 'answered' && answer.status < 500 ? { host: answer.host, port } : null
  }

  /** Another program may have taken the port meanwhile; where nothing can be seen, the answer has to do. */
  async #isOwn(port: number): Promise<boolean> {
    const own = await this.#options.ports()
    return own.length === 0 || own.includes(port)
  }

  async #lookElsewhere(signal: AbortSignal): Promise<AppAddress | null> {
    const { given, timing } = this.#options
    const now = this.#elapsed()
    if (now < timing.patienceMs || now - this.#looked < LOOK_MS) return null
    this.#looked = now
    const ports = (await this.#options.ports()).filter((port) => port !== given)
    for (const port of this.#others.keys()) if (!ports.includes(port)) this.#others.delete(port)
    for (const port of ports) {
      const answer = await this.#ask(port, signal)
      const found = this.#good(port, answer)
      if (found === null || answer.kind !== 'answered') continue
      const since = this.#others.get(port) ?? now
      this.#others.set(port, since)
      const wait = answer.status < 400 ? timing.otherPortMs : timing.otherPortMs * NO_PAGE_FACTOR
      if (now - since >= wait) return found
    }
    return null
  }

  #explain(): string {
    const { given, path, timing } = this.#options
    const limit = `within ${timing.limitMs / 1000} s`
    const { port, answer } = this.#last ?? { port: given, answer: { kind: 'refused' as const } }
    if (answer.kind === 'refused') {
      return `The app did not listen on a port ${limit}. It must listen on the port in the variable PORT (here ${given}) on 127.0.0.1.`
    }
    if (answer.kind === 'silent') {
      return `The app listens on port ${port} but gave no HTTP answer to GET ${path} ${limit}.`
    }
    return `The app answered GET ${path} with status ${answer.status}; it must be under 500 ${limit}. Set "health" in berth.json to a path that is.`
  }
}

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
