import type { Compute } from '../../compute/compute.ts'
import { wishOf } from '../../compute/compute.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { badRequest, notFound } from '../../errors.ts'
import type { SendBytes } from '../../http/byte-stream.ts'
import { accountCaller } from '../../http/caller.ts'
import { type Clock, toIso } from '../../runtime/clock.ts'
import { within } from '../../runtime/wait.ts'
import { TIERS, type TierName } from '../accounts/tiers.ts'
import {
  type ArchivedServer,
  type ArchiveSize,
  type OpenedArchive,
  openArchive,
  packArchive,
  tooLarge,
} from './archive.ts'
import { type CreatedServer, REGIONS, type Region, type ServerCreate, type ServerSystem } from './model.ts'
import type { ServersService } from './service.ts'
import type { ServerRow } from './table.ts'

/** Milliseconds that a server stands still for a client which takes none of its archive. @bound client */
const STALL_MS = 60_000

/** Dependencies of the transfers. */
interface TransfersDependencies {
  servers: ServersService
  compute: Compute
  clock: Clock
  /** The version of this berth. */
  version: string
}

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
  readonly #version: string

  constructor({ servers, compute, clock, version }: TransfersDependencies) {
    this.#servers = servers
    this.#compute = compute
    this.#clock = clock
    this.#version = version
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
