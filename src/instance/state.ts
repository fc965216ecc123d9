import { BerthError, badRequest, StartupError } from '../errors.ts'
import type { FirstIds } from '../resources/keys/service.ts'
import { type ClockState, toIso } from '../runtime/clock.ts'
import { messageOf } from '../runtime/error-info.ts'
import { KeyedMutex } from '../runtime/mutex.ts'
import { checkState } from '../storage/master-key.ts'
import { StateSwap } from '../storage/state.ts'
import { isControlRequest } from '../testing/api/path.ts'
import type { InstanceStates, Replaced } from '../testing/api/states.ts'
import { type Snapshot, Snapshots } from '../testing/snapshots/snapshots.ts'
import { Generation, type GenerationDependencies } from './generation.ts'

/** What changes the state as a whole happens one after the other. */
const TURN = 'state'

/** How long open requests may take to be answered when their commands have ended. */
const GRACE_MS = 1_000

/**
 * The generation that is, and how one follows another. Requests that come in between wait for the next one: a caller
 * sees the old state or the new one, never half of one.
 */
export class Instance implements InstanceStates {
  readonly #dependencies: GenerationDependencies
  readonly #snapshots: Snapshots
  readonly #turns = new KeyedMutex()
  #generation: Generation
  /** Requests that the generation is answering. */
  #open = 0
  #whenIdle: (() => void) | null = null
  /** Resolves when no connection is open any more, once berth stops. */
  #drained: Promise<void> | null = null
  /** Resolves when requests are let in again; null while they are. */
  #closed: Promise<void> | null = null
  #failure: BerthError | null = null
  /** Resolves when the state of before is removed. */
  #clearing: Promise<void> = Promise.resolve()
  /** Fires when berth is to end: what takes long and can be given up is given up then. */
  readonly #stopping = new AbortController()

  /** @throws StartupError where the state cannot be used */
  constructor(dependencies: Omit<GenerationDependencies, 'requestsEnded'>) {
    const whole = { ...dependencies, requestsEnded: () => this.#requestsEnded() }
    this.#dependencies = whole
    this.#snapshots = new Snapshots(whole.folder.path)
    this.#generation = new Generation(whole)
  }

  /** The one that answers now. */
  get generation(): Generation {
    return this.#generation
  }

  /** Whether what there was before runs again, and fixtures are applied. */
  get ready(): boolean {
    return this.#closed === null && this.#failure === null && this.#generation.ready
  }

  /** Responds to a request: finds the app that its path leads to, and hands it over. Never throws. */
  readonly respond = (request: Request): Response | Promise<Response> => {
    if (this.#closed !== null) return this.#respondLater(request, this.#closed)
    if (this.#failure !== null) return refusal(this.#failure)
    const app = this.#generation.appAt(request.url)
    const response = app instanceof Promise ? app.then((loaded) => loaded.fetch(request)) : app.fetch(request)
    // One of the control API may be what ends the generation: it is not waited for.
    if (response instanceof Response || isControlRequest(request)) return response
    this.#open += 1
    response.then(this.#requestEnded, this.#requestEnded)
    return response
  }

  readonly #requestEnded = (): void => {
    this.#open -= 1
    if (this.#open === 0) this.#whenIdle?.()
  }

  /** Responds from the next state. What an ended process or delivery of the last one still asked for is dropped. */
  async #respondLater(request: Request, open: Promise<void>): Promise<Response> {
    const { signal } = request
    await open
    return signal.aborted ? new Response(null, { status: 503 }) : this.respond(request)
  }

  /** Brings up what there was before and applies the fixtures. @throws StartupError where these cannot be applied */
  open(): Promise<void> {
    return this.#generation.open(this.#dependencies.fixtures)
  }

  reset(): Promise<Replaced> {
    return this.#inTurn(async () => {
      const { rngSeed } = this.#dependencies.config
      // Where randomness repeats, the first ids come again by themselves.
      const first = rngSeed === null ? this.#generation.firstIds : undefined
      const begun = performance.now()
      await this.#replace(async () => undefined, first)
      await this.#openAgain()
      return { took_ms: since(begun) }
    })
  }

  restore(name: string): Promise<Replaced> {
    return this.#inTurn(async () => {
      const begun = performance.now()
      await this.#replace(async (staging) => {
        const { clock } = await this.#snapshots.copyTo(name, staging, this.#stopping.signal)
        this.#check(staging)
        return clock
      })
      // As at a start: whoever needs a server before it runs again waits for it. A state that was kept is as it was:
      // fixtures put nothing into it.
      this.#generation
        .open(null)
        .catch((error) => this.#dependencies.logger.error('the restored state does not come up', { error }))
      return { took_ms: since(begun) }
    })
  }

  save(name: string): Promise<Snapshot> {
    return this.#inTurn(() =>
      this.#whileClosed(async () => {
        const { version, clock } = this.#dependencies
        const resume = await this.#generation.services.servers.pause()
        try {
          const file = { name, created_at: toIso(clock.now()), version, clock: clock.state }
          const copyDatabase = (path: string): void => this.#generation.copyDatabase(path)
          return await this.#snapshots.save(file, copyDatabase, this.#stopping.signal)
        } finally {
          resume()
        }
      }),
    )
  }

  snapshots(): Snapshot[] {
    return this.#snapshots.list()
  }

  removeSnapshot(name: string): Promise<void> {
    return this.#inTurn(() => this.#snapshots.remove(name))
  }

  /** Removes what a killed process has left of snapshots half made. */
  sweep(): void {
    this.#snapshots.sweep()
  }

  /** Ends the generation. @param drained resolves when no request is open any more */
  stop(drained: Promise<void>): Promise<void> {
    this.#stopping.abort()
    this.#drained = drained
    // What is being brought up is not waited for.
    this.#generation.abandon()
    return this.#turns.run(TURN, () => this.#generation.stop())
  }

  /** Lets go of the state, once it is stopped. */
  async close(): Promise<void> {
    await this.#generation.close()
    await this.#clearing
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.run(TURN, () => {
      if (this.#stopping.signal.aborted) throw stopping()
      return work()
    })
  }

  /**
   * Ends the generation and begins the next over another state.
   *
   * @param fill makes the next state ready in an empty folder, and returns where the clock is to stand in it
   * @throws what `fill` throws; the state is then what it was
   */
  async #replace(
    fill: (staging: string) => Promise<ClockState | undefined>,
    first?: FirstIds,
  ): Promise<void> {
    const { folder, clock } = this.#dependencies
    await this.#clearing
    const swap = new StateSwap(folder.path)
    let state: ClockState | undefined
    try {
      state = await fill(swap.staging)
      swap.ready()
    } catch (error) {
      await this.#clear(swap)
      throw error
    }
    await this.#whileClosed(async () => {
      try {
        await this.#end()
        swap.commit()
        await clock.begin(state)
        await this.#begin(first).catch(async () => {
          // On a full disk the next state has room once that of before is gone.
          await this.#clear(swap)
          await this.#begin(first)
        })
      } catch (error) {
        const cause = messageOf(error)
        this.#dependencies.logger.error('the next state cannot be used', { error })
        this.#failure = new BerthError(
          'service_unavailable',
          `The next state cannot be used: ${cause} Stop berth and start it again.`,
        )
        throw this.#failure
      }
    })
    this.#clearing = this.#clear(swap)
  }

  /** Composes what works on the state that is there now. @throws StartupError where it cannot be used */
  async #begin(first: FirstIds | undefined): Promise<void> {
    this.#generation = new Generation(this.#dependencies, first)
    await this.#generation.recover()
  }

  /** Removes the state that does not hold. What stays of it goes with the next, or at the next start. */
  async #clear(swap: StateSwap): Promise<void> {
    try {
      await swap.clear()
    } catch (error) {
      this.#dependencies.logger.error('what is left of another state could not be removed', { error })
    }
  }

  /** @throws BerthError where the fixtures cannot be applied any more: what they take from this machine has changed */
  async #openAgain(): Promise<void> {
    if (this.#stopping.signal.aborted) throw stopping()
    try {
      await this.open()
    } catch (error) {
      if (this.#stopping.signal.aborted) throw stopping()
      if (error instanceof StartupError) throw new BerthError('service_unavailable', error.message)
      throw error
    }
  }

  async #end(): Promise<void> {
    const ending = this.#generation
    // What happens from now on is told to nobody: the state in which it happens is about to go.
    await ending.services.deliveries.stop()
    await ending.close()
    // Folders that are still being removed would be taken from the next state.
    await ending.swept()
  }

  /** Resolves when no request is open any more, or after the grace that open ones have. */
  async #requestsEnded(): Promise<void> {
    const { promise: idle, resolve } = Promise.withResolvers<void>()
    this.#whenIdle = resolve
    if (this.#open === 0) resolve()
    // At the end of berth those for the control API count too.
    const ended = this.#drained ?? idle
    const over = await Promise.race([ended.then(() => true), Bun.sleep(GRACE_MS).then(() => false)])
    if (!over && this.#drained)
      this.#dependencies.logger.info('requests that went on at the stop are cut off')
    this.#whenIdle = null
  }

  /** Does something while no request is let in. */
  async #whileClosed<T>(work: () => Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#closed = promise
    try {
      return await work()
    } finally {
      this.#closed = null
      resolve()
    }
  }

  /** Sees whether a state can be opened, and brings its schema up to date. @throws BerthError 400 */
  #check(path: string): void {
    const { folder, config } = this.#dependencies
    try {
      checkState(path, { dataDirectory: folder, configured: config.masterKey })
    } catch (error) {
      if (!(error instanceof StartupError)) throw error
      throw badRequest(`The snapshot cannot be used: ${error.message}`)
    }
  }
}

const stopping = (): BerthError => new BerthError('service_unavailable', 'berth is stopping. Start it again.')

/** Milliseconds, to a tenth. */
const since = (begun: number): number => Math.round((performance.now() - begun) * 10) / 10

const refusal = (failure: BerthError): Response => Response.json(failure.toBody(), { status: failure.status })
