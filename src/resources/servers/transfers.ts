import {
  type Compute,
  type ComputeDriver,
  computeOf,
  type FileLoss,
  NO_WISH,
  type OpenPlace,
  type PlaceChoice,
  type ServerHandle,
  wishOf,
} from '../../compute/compute.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { COMPUTES, type ComputeName } from '../../config/compute.ts'
import { BerthError, badRequest, notFound, StartupError } from '../../errors.ts'
import type { SendBytes } from '../../http/byte-stream.ts'
import { accountCaller } from '../../http/caller.ts'
import { type Clock, toIso } from '../../runtime/clock.ts'
import { messageOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import { KeyedMutex } from '../../runtime/mutex.ts'
import { within } from '../../runtime/wait.ts'
import { TIERS, type TierName } from '../accounts/tiers.ts'
import {
  type ArchivedServer,
  type ArchiveSize,
  describedTree,
  describeTree,
  type OpenedArchive,
  openArchive,
  packArchive,
  TreeManifest,
  tooLarge,
} from './archive.ts'
import { type CreatedServer, REGIONS, type Region, type ServerCreate, type ServerSystem } from './model.ts'
import type { ServersService } from './service.ts'
import { filesKeyOf, type ServerRow } from './table.ts'

/** Milliseconds that a server stands still for a client which takes none of its archive. @bound client */
const STALL_MS = 60_000

/** Dependencies of the transfers. */
interface TransfersDependencies {
  servers: ServersService
  compute: Compute
  clock: Clock
  logger: Logger
  /** The version of this berth. */
  version: string
  /** Whether the data directory is removed when berth ends. */
  ephemeral: boolean
  openPlace: OpenPlace
}

/** A server whose files were moved. */
export interface MovedServer extends ArchiveSize {
  readonly id: string
  readonly from: ComputeName
  readonly to: ComputeName
  /** Whether the files are removed from where they were; otherwise a later start does so. */
  readonly removed: boolean
}

/** A server that has got other files, since its own are lost. */
export interface RecoveredServer extends ArchiveSize {
  readonly id: string
  /** Why its files cannot be had, a sentence. */
  readonly cause: string
  /** What is lost, a sentence. */
  readonly lost: string
  /** What stays of it on its engine. */
  readonly left: { readonly name: string; readonly remedy: string }[]
}

/** The operations of a driver that a move needs. */
type FilePlace = Pick<ComputeDriver, 'create' | 'keep' | 'workspace' | 'destroy' | 'checkFiles'>

/** A server that was made from an archive. */
export interface ImportedServer extends CreatedServer, ArchiveSize {
  /** What the archive is of. */
  readonly archived: Pick<ArchivedServer, 'id' | 'exported_at' | 'image' | 'root'>
}

/** Carries single servers out of an instance and into it, with their files. */
export class ServerTransfers {
  readonly #servers: ServersService
  readonly #compute: Compute
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #version: string
  readonly #isEphemeral: boolean
  readonly #openPlace: OpenPlace
  /** Moves are one at a time: each looks at what killed ones have left. */
  readonly #moves = new KeyedMutex()

  constructor({ servers, compute, clock, logger, version, ephemeral, openPlace }: TransfersDependencies) {
    this.#servers = servers
    this.#compute = compute
    this.#clock = clock
    this.#logger = logger
    this.#version = version
    this.#isEphemeral = ephemeral
    this.#openPlace = openPlace
  }

  /** Checks that the files of a server can be had. @throws BerthError 404; ComputeError */
  async check(id: string): Promise<void> {
    const { handle } = this.#row(id)
    await this.#compute.driver.checkFiles(handle)
    await this.#compute.workspace(handle).stat('.')
  }

  /**
   * Sends the archive of a server, which stands still meanwhile if it runs.
   *
   * @param gone aborts when nobody takes it any more
   * @throws BerthError 404; ComputeError; Error if the client takes nothing for a minute
   */
  async export(id: string, send: SendBytes, gone: AbortSignal): Promise<void> {
    await this.#servers.lifecycle.turn(id, async () => {
      const row = this.#row(id)
      const resume = await this.#servers.lifecycle.sandbox(id)?.pause()
      try {
        const files = this.#compute.workspace(row.handle).pack()
        for await (const chunk of packArchive(this.#describe(row), files)) {
          const sent = Promise.resolve(send(chunk)).then(() => true)
          const isTaken = await within(STALL_MS, sent, false, gone)
          if (!isTaken || gone.aborted)
            throw new Error('The client takes no more of the archive of a server.')
        }
      } finally {
        resume?.()
      }
    })
  }

  /**
   * Makes a server from an archive. It runs when this resolves.
   *
   * @param chosen what it is to be in place of what the archive says
   * @throws BerthError 400 for an archive that is damaged or too large, and as `ServersService.create` does; ComputeError
   */
  async import(
    accountId: string,
    bytes: AsyncIterable<Uint8Array>,
    chosen: ServerCreate & ServerSystem,
  ): Promise<ImportedServer> {
    const archive = await openArchive(bytes)
    try {
      const { server } = archive
      const { task = server.task, tier = tierOf(server), region = regionOf(server) } = chosen
      const created = await this.#servers.create(
        accountCaller(accountId),
        { task, tier, region },
        this.#systemOf(server, chosen),
        (files, { storageBytes }) => fill(files, archive, storageBytes),
      )
      this.#servers.measure(created.id)
      const { id, exported_at, image, root } = server
      return { ...created, ...archive.size, archived: { id, exported_at, image, root } }
    } finally {
      await archive.close()
    }
  }

  /**
   * Moves the files of a server between what this berth runs servers on and another place. The server stops. Until the copy
   * has been compared, its files stay where they are, and from then on they are the copy: whenever berth is killed, one of
   * both is whole, and the next start removes the other one.
   *
   * @param to `local`, `docker`, `kubernetes`, or the address of a Docker engine
   * @throws BerthError 400, 404, 502 if the copy is not the same; ComputeError
   */
  move(id: string, to: string): Promise<MovedServer> {
    this.#row(id)
    return this.#moves.run('', () => this.#servers.lifecycle.turn(id, () => this.#move(this.#row(id), to)))
  }

  /**
   * Gives a server whose files are lost new ones: none, or those of an archive. What is left of the old ones stays.
   *
   * @param isGone whether a person says so of an engine or a cluster of which it cannot be seen
   * @throws BerthError 400 if its files are there or may be, or the archive is damaged or another server's; 404; ComputeError
   */
  recover(id: string, bytes: AsyncIterable<Uint8Array> | null, isGone: boolean): Promise<RecoveredServer> {
    this.#row(id)
    return this.#moves.run('', () =>
      this.#servers.lifecycle.turn(id, () => this.#recover(this.#row(id), bytes, isGone)),
    )
  }

  async #move(row: ServerRow, to: string): Promise<MovedServer> {
    const here = this.#servers.images.compute
    const from = computeOf(row.handle)
    const choice = placeOf(to)
    const leaves = choice.compute !== here || choice.address !== null
    if (leaves && from !== here) {
      throw badRequest(
        from === choice.compute
          ? `The files of ${row.id} are there already.`
          : `The files of ${row.id} are where --compute ${from} keeps them. One of the two places has to be what this berth runs servers on: name ${here}, or start berth with --compute ${from}.`,
      )
    }
    if (!leaves && from === here) throw badRequest(`The files of ${row.id} are there already.`)
    if (this.#isEphemeral)
      throw badRequest(
        'The data directory of this berth is removed when it ends. Start one with --data to move servers.',
      )
    const place = await this.#open(leaves ? choice : { compute: from, address: null })
    try {
      const [source, target] = leaves ? [this.#own, place] : [place, this.#own]
      return await this.#carry(row, source, target, { from, to: choice.compute })
    } finally {
      await place.close?.()
    }
  }

  async #carry(
    row: ServerRow,
    source: FilePlace,
    target: FilePlace,
    way: Pick<MovedServer, 'from' | 'to'>,
  ): Promise<MovedServer> {
    const { id, handle } = row
    const { lifecycle, meter } = this.#servers
    await source.checkFiles(handle)
    const didRun = lifecycle.sandbox(id) !== undefined
    if (didRun) await lifecycle.stop(row)
    try {
      const { storageBytes } = lifecycle.limits(row)
      const size = await this.#newFiles(row, target, storageBytes, async (files, placed) => {
        if (isSameEngine(placed, handle)) throw badRequest(`The files of ${id} are on that engine already.`)
        const wanted = new TreeManifest(false)
        await files.unpack(describedTree(source.workspace(handle).pack(), wanted))
        const differs = wanted.differenceTo(await describeTree(files.pack()))
        if (differs !== null)
          throw new BerthError(
            'compute_backend_error',
            `The copy of ${JSON.stringify(differs)} is not like the file, so ${id} was not moved. Try again.`,
          )
        return { size: wanted.size, removesOld: true }
      })
      meter.forget(id)
      const removed = await this.#destroy(id, source, handle)
      return { id, ...way, ...size, removed }
    } catch (error) {
      if (didRun) await lifecycle.start(row).catch(() => {})
      throw error
    }
  }

  async #recover(
    row: ServerRow,
    bytes: AsyncIterable<Uint8Array> | null,
    isGone: boolean,
  ): Promise<RecoveredServer> {
    const { id } = row
    const loss = await this.#lossOf(row)
    if (loss === null)
      throw badRequest(
        `The files of ${id} are there, so there is nothing to recover. Start it, or delete it if you do not need it.`,
      )
    if (!loss.isSeen && !isGone)
      throw badRequest(
        `Whether the files of ${id} are lost cannot be seen from here: ${loss.cause} If what has them is gone for good: berth servers recover ${id} --gone.`,
      )
    const archive = bytes === null ? null : await openArchive(bytes)
    try {
      if (archive !== null && archive.server.id !== id)
        throw badRequest(
          `The archive is of ${archive.server.id}, not of ${id}. "berth servers import" makes a server of its own from it.`,
        )
      const { storageBytes } = this.#servers.lifecycle.limits(row)
      await this.#newFiles(row, this.#own, storageBytes, async (files) => {
        if (archive !== null) await fill(files, archive, storageBytes)
        // What runs there ends itself, or has ended.
        if (this.#servers.lifecycle.sandbox(id) !== undefined) await this.#servers.lifecycle.stop(row)
        return { size: NOTHING, removesOld: false }
      })
      this.#servers.meter.forget(id)
      return {
        ...{ id, cause: loss.cause, left: [...loss.left] },
        lost:
          archive === null
            ? `All files of ${id} are lost.`
            : `What changed in the files of ${id} after its export at ${archive.server.exported_at} is lost.`,
        ...(archive?.size ?? NOTHING),
      }
    } finally {
      await archive?.close()
    }
  }

  /** Returns why the files of a server cannot be had; null if they can. */
  async #lossOf({ id, handle }: ServerRow): Promise<FileLoss | null> {
    const there = computeOf(handle)
    if (there === this.#servers.images.compute) return lossOn(this.#compute.driver, handle)
    let loss: FileLoss | null
    try {
      const place = await this.#place({ compute: there, address: null })
      try {
        loss = await lossOn(place, handle)
      } finally {
        await place.close?.()
      }
    } catch (error) {
      return { cause: messageOf(error), isSeen: false, left: [] }
    }
    if (loss !== null) return loss
    throw badRequest(
      `The files of ${id} are where --compute ${there} keeps them. Move them: berth servers move ${id} --to ${this.#servers.images.compute}.`,
    )
  }

  /**
   * Makes another workspace for a server, fills it, and has the server use it from then on. Until then, it is noted as
   * something to be removed.
   */
  async #newFiles<Size>(
    row: ServerRow,
    target: FilePlace,
    storageBytes: number,
    fillIt: (files: Workspace, placed: ServerHandle) => Promise<{ size: Size; removesOld: boolean }>,
  ): Promise<Size> {
    const { id, handle } = row
    const { records } = this.#servers
    const placed = await target.create(id, wishOf(handle), storageBytes)
    records.noteDeleted(filesKeyOf(id, placed), placed)
    let filled: { size: Size; removesOld: boolean }
    try {
      filled = await fillIt(target.workspace(placed), placed)
    } catch (error) {
      await this.#destroy(id, target, placed)
      throw error
    }
    records.move(row, placed, filled.removesOld)
    target.keep(placed)
    return filled.size
  }

  /** Removes files that are noted as removed. @returns whether they are gone */
  async #destroy(id: string, place: FilePlace, handle: ServerHandle): Promise<boolean> {
    try {
      await place.destroy(handle)
      this.#servers.records.forgetDeleted(filesKeyOf(id, handle))
      return true
    } catch (error) {
      this.#logger.warn('files that nobody needs could not be removed', { serverId: id, error })
      return false
    }
  }

  /** Opens another place. @throws BerthError 400 */
  #place(choice: PlaceChoice): Promise<ComputeDriver> {
    return this.#openPlace(choice).catch((error: unknown) => {
      throw error instanceof StartupError ? badRequest(error.message) : error
    })
  }

  /** Opens another place, and ends what killed berths have left running there. @throws BerthError 400; ComputeError */
  async #open(choice: PlaceChoice): Promise<ComputeDriver> {
    const { records } = this.#servers
    const place = await this.#place(choice)
    try {
      const handles = records.placed().map(({ handle }) => handle)
      await place.takeStock(handles, []).end()
      for (const { id, handle } of records.deleted()) {
        if (computeOf(handle) !== choice.compute) continue
        await place.destroy(handle).then(
          () => records.forgetDeleted(id),
          // They are on another engine, or in use: a start removes them.
          () => {},
        )
      }
      return place
    } catch (error) {
      await place.close?.()
      throw error
    }
  }

  get #own(): FilePlace {
    const compute = this.#compute
    return {
      create: (id, wish = NO_WISH, bytes = 0) => compute.create(id, wish, bytes),
      keep: (handle) => compute.driver.keep(handle),
      workspace: (handle) => compute.workspace(handle),
      destroy: (handle) => compute.driver.destroy(handle),
      checkFiles: (handle) => compute.driver.checkFiles(handle),
    }
  }

  /** Returns the system to ask for: that of the archive only where servers have one of their own. */
  #systemOf(server: ArchivedServer, { image, root }: ServerSystem): ServerSystem {
    const hasSystem = this.#servers.images.compute !== 'local'
    const chosenImage = image ?? (hasSystem ? (server.image ?? undefined) : undefined)
    const isRoot = root ?? (hasSystem && server.root ? 'true' : undefined)
    return {
      ...(chosenImage === undefined ? {} : { image: chosenImage }),
      ...(isRoot === undefined ? {} : { root: isRoot }),
    }
  }

  #describe({ id, task, tier, region, handle }: ServerRow): ArchivedServer {
    const exported_at = toIso(this.#clock.now())
    return { format: 1, id, task, tier, region, ...wishOf(handle), exported_at, version: this.#version }
  }

  #row(id: string): ServerRow {
    const row = this.#servers.records.find(id)
    if (row === undefined) throw notFound(`The server "${id}"`)
    return row
  }
}

/** Fills an empty workspace from an archive. @param most bytes that it may take */
async function fill(files: Workspace, archive: OpenedArchive, most: number): Promise<void> {
  await files.unpack(archive.files(most))
  if ((await files.usage()) > most) throw tooLarge(most)
}

const tierOf = ({ tier }: ArchivedServer): TierName => {
  const known = TIERS.find((one) => one === tier)
  if (known !== undefined) return known
  throw badRequest(`The archive names the tier ${JSON.stringify(tier)}. Choose one of ${TIERS.join(', ')}.`)
}

const regionOf = ({ region }: ArchivedServer): Region => {
  const known = REGIONS.find((one) => one === region)
  if (known !== undefined) return known
  throw badRequest(
    `The archive names the region ${JSON.stringify(region)}. Choose one of ${REGIONS.join(', ')}.`,
  )
}

const NOTHING: ArchiveSize = { files: 0, bytes: 0 }

/** Returns why a place does not have the files of a server; null if it has. */
async function lossOn(
  place: Pick<ComputeDriver, 'lossOf' | 'checkFiles'>,
  handle: ServerHandle,
): Promise<FileLoss | null> {
  if (place.lossOf !== undefined) return place.lossOf(handle)
  return place.checkFiles(handle).then(
    () => null,
    (error: unknown) => ({ cause: messageOf(error), isSeen: true, left: [] }),
  )
}

/** Reads where to move something. @throws BerthError 400 */
function placeOf(to: string): PlaceChoice {
  const compute = COMPUTES.find((one) => one === to)
  if (compute !== undefined) return { compute, address: null }
  if (/^(?:unix|tcp|ssh):\/\//.test(to)) return { compute: 'docker', address: to }
  throw badRequest(
    `"to": expected ${COMPUTES.join(', ')}, or the address of a Docker engine such as unix:///PATH, got ${JSON.stringify(to)}.`,
  )
}

const isSameEngine = (one: ServerHandle, other: ServerHandle): boolean =>
  one.kind === 'engine' && computeOf(one) === computeOf(other) && one.engine === other.engine
