import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ComputeDriver } from '../compute/compute.ts'
import { ComputeError } from '../compute/sandbox.ts'
import { BerthError, badRequest, StartupError } from '../errors.ts'
import type { Respond } from '../http/request-log.ts'
import type { FirstIds } from '../resources/keys/first-account.ts'
import { filesKeyOf } from '../resources/servers/table.ts'
import { type ClockState, toIso } from '../runtime/clock.ts'
import { messageOf } from '../runtime/error-info.ts'
import { KeyedMutex } from '../runtime/mutex.ts'
import { checkState } from '../storage/cipher.ts'
import { openDatabase, SCHEMA } from '../storage/database.ts'
import { removeTreeAside } from '../storage/files.ts'
import { hasServerArchives, SERVERS, StateSwap, serversIn } from '../storage/state.ts'
import type { UndoKind } from '../testing/names.ts'
import type {
  ReplacementOptions,
  RestoredState,
  StateCause,
  StateDiff,
  StateOperations,
  StateReplacement,
} from '../testing/testing.ts'
import { type Snapshot, Snapshots, saveUndo } from '../testing/testing.ts'
import type { StoredServer } from './carried-files.ts'
import { Generation, type GenerationDependencies } from './generation.ts'
import { RequestGate } from './request-gate.ts'

/** The mutex key of operations on the whole state. */
const TURN = 'state'

/** Dependencies of `InstanceState`. */
type InstanceDependencies = Omit<GenerationDependencies, 'startedAt' | 'states' | 'isReady' | 'requestsEnded'>

/**
 * The current generation and its replacement. Requests that arrive during a replacement wait for the next generation
 * (`RequestGate`).
 */
export class InstanceState implements StateOperations {
  readonly #dependencies: GenerationDependencies
  readonly #snapshots: Snapshots
  readonly #turns = new KeyedMutex()
  readonly #gate: RequestGate
  #generation: Generation
  /** Resolves when the state of before is removed. */
  #clearing: Promise<void> = Promise.resolve()
  /** Fires when berth stops; long operations are then aborted if possible. */
  readonly #stopping = new AbortController()

  /**
   * @throws StartupError if the state cannot be used
   */
  constructor(dependencies: InstanceDependencies) {
    const whole = {
      ...dependencies,
      startedAt: performance.now(),
      states: this,
      isReady: () => this.ready,
      requestsEnded: () => this.#gate.requestsEnded(),
    }
    this.#dependencies = whole
    this.#gate = new RequestGate((request) => this.#generation.dispatch(request), whole.logger)
    this.#snapshots = new Snapshots(whole.dataDirectory.path)
    this.#generation = new Generation(whole, 'start')
  }

  /** The current generation. */
  get generation(): Generation {
    return this.#generation
  }

  /** Whether recovery and fixtures are complete. */
  get ready(): boolean {
    return this.#gate.isOpen && this.#generation.ready
  }

  /** Responds to a request, by the current generation. Never throws. */
  get respond(): Respond {
    return this.#gate.respond
  }

  /**
   * Starts what ran before and applies the fixtures.
   *
   * @throws StartupError if fixtures cannot be applied
   */
  open(): Promise<void> {
    return this.#generation.open(this.#dependencies.fixtures)
  }

  reset({ undo }: ReplacementOptions): Promise<StateReplacement> {
    return this.#exclusively(async () => {
      const saved = undo ? { undo: await this.#saveUndo('before-reset') } : {}
      // Seeded randomness yields the same first ids again.
      const first = this.#dependencies.config.rngSeed === null ? this.#generation.firstIds : undefined
      const begun = performance.now()
      await this.#replace('reset', async () => undefined, first)
      await this.#openAgain()
      return { took_ms: since(begun), ...saved }
    })
  }

  restore(name: string, { undo }: ReplacementOptions): Promise<RestoredState> {
    return this.#exclusively(async () => {
      this.#snapshots.check(name)
      const saved = undo ? { undo: await this.#saveUndo('before-restore', name) } : {}
      const begun = performance.now()
      await this.#replace('restore', async (staging) => {
        const { clock } = await this.#snapshots.copyTo(name, staging, this.#stopping.signal)
        this.#check(staging)
        await this.#spareKept(name, staging)
        await this.#placeServers(staging)
        return clock
      })
      const took_ms = since(begun)
      const outbound_rules = this.#generation.services.servers.networks.chosen()
      // As at a start, requests that need a server wait for it. Fixtures are not applied to a restored state.
      this.#generation
        .open(null)
        .catch((error) => this.#dependencies.logger.error('the restored state does not come up', { error }))
      return { took_ms, outbound_rules, ...saved }
    })
  }

  save(name: string): Promise<Snapshot> {
    return this.#exclusively(() => this.#save(name))
  }

  #saveUndo(kind: UndoKind, spared?: string): Promise<string> {
    return saveUndo(kind, this.#snapshots, (name) => this.#save(name), spared)
  }

  async #save(name: string): Promise<Snapshot> {
    const { lifecycle } = this.#generation.services.servers
    // Before requests have to wait: a server may take long to start or to delete.
    const goOn = await lifecycle.standStill(this.#stopping.signal).catch(() => {
      throw stopping()
    })
    try {
      return await this.#gate.whileClosed(() => this.#copy(name))
    } finally {
      goOn()
    }
  }

  async #copy(name: string): Promise<Snapshot> {
    const { version, clock } = this.#dependencies
    const { servers, metering } = this.#generation.services
    await servers.checkAllFiles()
    const resume = await servers.lifecycle.pause()
    try {
      metering.writeAll()
      const created_at = toIso(clock.now())
      const file = { name, created_at, version, schema: SCHEMA, clock: clock.state }
      const copyDatabase = (path: string): void => this.#generation.copyDatabase(path)
      const { signal } = this.#stopping
      const pack = async (copy: string): Promise<void> => {
        if (this.#driver.keepsFilesHere) return
        const { packServers } = await import('./carried-files.ts')
        await packServers(this.#driver, servers.records.placed(), copy, signal)
      }
      return await this.#snapshots.save(file, copyDatabase, signal, pack)
    } finally {
      resume()
    }
  }

  bringUp(body: unknown): Promise<void> {
    return this.#exclusively(async () => {
      const { readFixturesRequest } = await import('../testing/seed/read.ts')
      await this.#generation.open(this.#dependencies.fixtures)
      try {
        await this.#generation.bringUp(readFixturesRequest(body))
      } catch (error) {
        if (error instanceof StartupError) throw badRequest(error.message)
        throw error
      }
    })
  }

  compare(from: string, to: string | null): Promise<StateDiff> {
    return this.#exclusively(() =>
      this.#snapshots.compare(
        from,
        to,
        (path) => this.#generation.copyDatabase(path),
        (id) => {
          const server = this.#generation.services.servers.records.find(id)
          return server === undefined || this.#driver.keepsFilesHere
            ? null
            : this.#driver.workspace(server.handle).pack()
        },
      ),
    )
  }

  snapshots(): Snapshot[] {
    return this.#snapshots.list()
  }

  removeSnapshot(name: string): Promise<void> {
    return this.#exclusively(() => this.#snapshots.remove(name))
  }

  /** Removes incomplete snapshots of a killed process. What is done to snapshots afterwards waits for it. */
  sweep(): void {
    this.#turns
      .run(TURN, () => this.#snapshots.sweep())
      .catch((error) =>
        this.#dependencies.logger.error('incomplete snapshots could not be removed', { error }),
      )
  }

  /** Ends the generation. @param drained resolves when no request is open any more */
  stop(drained: Promise<void>): Promise<void> {
    this.#stopping.abort()
    this.#gate.drain(drained)
    // Do not wait for a start under way.
    this.#generation.abandon()
    return this.#turns.run(TURN, () => this.#generation.stop())
  }

  /** Lets go of the state, once it is stopped. */
  async close(): Promise<void> {
    await this.#generation.close()
    await this.#clearing
  }

  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.run(TURN, () => {
      if (this.#stopping.signal.aborted) throw stopping()
      return work()
    })
  }

  /**
   * Ends the generation and begins the next with another state.
   *
   * @param by what replaces it
   * @param fill prepares the next state in an empty directory, and returns its clock
   * @throws what `fill` throws; the state is then unchanged
   */
  async #replace(
    by: StateCause,
    fill: (staging: string) => Promise<ClockState | undefined>,
    first?: FirstIds,
  ): Promise<void> {
    const { dataDirectory, clock } = this.#dependencies
    await this.#clearing
    const hasElsewhere = this.#hasElsewhere
    const swap = new StateSwap(dataDirectory.path)
    let state: ClockState | undefined
    try {
      state = await fill(swap.staging)
      // It notes what the present servers have elsewhere.
      if (hasElsewhere) openDatabase(join(swap.staging, 'berth.db')).close()
      swap.ready(this.#kept.map((id) => join(SERVERS, id)))
    } catch (error) {
      await this.#clear(swap)
      throw error
    }
    await this.#gate.whileClosed(async () => {
      try {
        await this.#end()
        if (hasElsewhere) await this.#noteReplaced(join(swap.staging, 'berth.db'))
        swap.commit()
        await clock.begin(state)
        await this.#begin(by, first).catch(async () => {
          // On a full disk, removing the previous state makes room for the next.
          await this.#clear(swap)
          await this.#begin(by, first)
        })
      } catch (error) {
        const cause = messageOf(error)
        this.#dependencies.logger.error('the next state cannot be used', { error })
        const failure = new BerthError(
          'service_unavailable',
          `The next state cannot be used: ${cause} Stop berth and start it again.`,
        )
        this.#gate.fail(failure)
        throw failure
      }
    })
    this.#clearing = this.#clear(swap)
  }

  /**
   * Gives the servers of a state that is about to be restored their files where the driver keeps them. Until that state is
   * in effect, the present one has them among what is to be removed.
   */
  async #placeServers(staging: string): Promise<void> {
    if (this.#driver.keepsFilesHere && !hasServerArchives(staging)) return
    const { unpackServers } = await import('./carried-files.ts')
    const { records } = this.#generation.services.servers
    const placed: StoredServer[] = []
    const made = (server: StoredServer): void => {
      records.noteDeleted(filesKeyOf(server.id, server.handle), server.handle)
      placed.push(server)
    }
    try {
      const { plan } = this.#dependencies
      await unpackServers(this.#driver, staging, {
        ...{ plan, isWhole: true, made },
        signal: this.#stopping.signal,
      })
    } catch (error) {
      for (const { id, handle } of placed) {
        await this.#driver.destroy(handle).then(
          () => records.forgetDeleted(filesKeyOf(id, handle)),
          // The next start removes them.
          (error) => this.#dependencies.logger.error('restored files could not be removed', { error }),
        )
      }
      throw error instanceof ComputeError
        ? new BerthError(
            'compute_backend_error',
            `The snapshot was not restored: ${error.message} The state is unchanged.`,
            { cause: error },
          )
        : error
    }
  }

  /** Has the next state remove what the servers of the present one have elsewhere, once it is in effect. */
  async #noteReplaced(next: string): Promise<void> {
    const { noteReplaced } = await import('./carried-files.ts')
    noteReplaced(this.#dependencies.dataDirectory.database, next)
  }

  /** Whether the present servers may have something that is not in the data directory. */
  get #hasElsewhere(): boolean {
    if (!this.#driver.keepsFilesHere) return true
    const { records } = this.#generation.services.servers
    return [...records.placed(), ...records.deleted()].some(({ handle }) => handle.kind !== 'local')
  }

  get #driver(): ComputeDriver {
    return this.#dependencies.selected.driver
  }

  /** Ids of the directories that no server owns and that stay: they are of no state. */
  get #kept(): string[] {
    const { path } = this.#dependencies.dataDirectory
    return this.#generation.services.servers.lifecycle.kept.filter((id) =>
      existsSync(join(path, SERVERS, id)),
    )
  }

  /**
   * Removes copies of kept directories from a state that is about to be restored, since the directories themselves stay.
   *
   * @throws BerthError 400 if one of them is a server's in that state
   */
  async #spareKept(name: string, staging: string): Promise<void> {
    const kept = this.#kept
    if (kept.length === 0) return
    const { path } = this.#dependencies.dataDirectory
    const owned = serversIn(join(staging, 'berth.db'))
    const both = kept.find((id) => owned.includes(id))
    if (both !== undefined) {
      throw badRequest(
        `The snapshot "${name}" has the server ${both}, whose directory here no server owns and berth keeps. Move ${join(path, SERVERS, both)} away, or remove it with "berth doctor --leaks --fix-kept ${both}", then restore again.`,
      )
    }
    for (const id of kept) await removeTreeAside(join(staging, SERVERS, id))
  }

  /**
   * Creates a generation for the current state.
   *
   * @throws StartupError if the state cannot be used
   */
  async #begin(by: StateCause, first: FirstIds | undefined): Promise<void> {
    this.#generation = new Generation(this.#dependencies, by, first)
    await this.#generation.recover()
  }

  /** Removes the unused state. The next swap or start removes what is left. */
  async #clear(swap: StateSwap): Promise<void> {
    try {
      await swap.clear()
    } catch (error) {
      this.#dependencies.logger.error('what is left of another state could not be removed', { error })
    }
  }

  /**
   * @throws BerthError if the fixtures no longer apply because their sources on this machine have changed
   */
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
    ending.services.changes.notify('reset', 'state', null)
    // Nothing more is delivered, because the state is about to be removed.
    await ending.services.deliveries.stop()
    await ending.close()
    // Directories that are still being removed would be taken from the next state.
    await ending.swept()
  }

  /**
   * Checks that a state can be opened, and migrates its schema.
   *
   * @throws BerthError 400
   */
  #check(path: string): void {
    const { dataDirectory, config } = this.#dependencies
    try {
      checkState(path, { dataDirectory: dataDirectory, configured: config.masterKey })
    } catch (error) {
      if (!(error instanceof StartupError)) throw error
      throw badRequest(`The snapshot cannot be used: ${error.message}`)
    }
  }
}

const stopping = (): BerthError => new BerthError('service_unavailable', 'berth is stopping. Start it again.')

/** Milliseconds, to a tenth. */
const since = (begun: number): number => Math.round((performance.now() - begun) * 10) / 10
