import { constants } from 'node:fs'
import { lstat, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Staging, type Workspace, WorkspaceError } from '../../compute/workspace.ts'
import { badRequest } from '../../errors.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { KeyedMutex } from '../../runtime/mutex.ts'
import { compareManifests, toManifest } from '../files/manifest.ts'
import type { PushedFiles } from '../projects/model.ts'
import { SourceError } from '../projects/sources/errors.ts'
import { SOURCE_LIMITS, type SourceLimits } from '../projects/sources/limits.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import { presentEntries } from './file-change.ts'

/** The directory that a client sends files for. */
interface PushTarget {
  /** Of the project, or of the server. */
  readonly id: string
  readonly workspace: Workspace
  /** Relative to the workspace; empty for the workspace itself. */
  readonly directory: string
  /** Returns the number of bytes that may be added. */
  room(): Promise<number>
}

/** The files that a client describes and has sent. */
export interface ReceivedFiles {
  /** Paths of the files and links that were sent. */
  readonly written: readonly string[]
  /** Directory with these, absolute, ready to be merged; null if there are none. */
  readonly tree: string | null
}

/** What is done with a push whose files have all been sent. */
interface PushSteps<Result> {
  /** Ends what an earlier push has begun, which may put files back. */
  makeWay(received: ReceivedFiles): Promise<void>
  /** Changes the files. */
  apply(received: ReceivedFiles): Promise<Result>
}

/** A push that lacks files, so that nothing was changed, or what it has done. */
export type TakenPush<Result> =
  | { readonly missing: readonly string[] }
  | { readonly missing: null; readonly result: Result }

/** Milliseconds after which the parts of a push that is not continued are removed. */
const STAGED_MS = 10 * 60_000

/** The parts of a push that were sent. */
interface StagedParts {
  /** Identifies the files and links that are described. */
  readonly manifest: string
  readonly files: StagedFiles
  expiry: Timer | null
}

/**
 * Receives the files that clients send for directories. A client first describes all files, learns which of them are
 * missing there, and sends those in one part or several. Takes one push of a target at a time.
 */
export class IncomingFiles {
  readonly #clock: Clock
  readonly #mutex = new KeyedMutex()
  /** What a target lacked when it was asked last: a client sends that next, with the same manifest. */
  readonly #asked = new Map<string, { manifest: string; changed: string[] }>()
  /** Targets whose files have changed since a part was taken, so that others are there than those compared. */
  readonly #changed = new Set<string>()
  readonly #staged = new Map<string, StagedParts>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Takes a part of a push. With the last part, does what is to be done with the files.
   *
   * @param archive the content of files that differ, and of no others that the manifest lacks
   * @throws BerthError 400 for a path or an archive that is refused; what `steps` throw
   */
  take<Result>(
    target: PushTarget,
    pushed: PushedFiles,
    archive: Uint8Array | null,
    { makeWay, apply }: PushSteps<Result>,
  ): Promise<TakenPush<Result>> {
    const { id } = target
    return this.#mutex.run(id, async () => {
      this.#changed.delete(id)
      try {
        const { missing, ...received } = await this.#receive(target, pushed, archive)
        if (missing.length > 0) return { missing }
        await makeWay(received)
        if (this.#changed.has(id)) {
          const sent = new Set(received.written)
          const lacking = (await compare(target, pushed)).filter((path) => !sent.has(path))
          if (lacking.length > 0) return { missing: lacking }
        }
        const result = await apply(received)
        await this.#discard(id)
        return { missing: null, result }
      } catch (error) {
        await this.#discard(id)
        throw refusalOf(error)
      }
    })
  }

  async #receive(
    target: PushTarget,
    pushed: PushedFiles,
    archive: Uint8Array | null,
  ): Promise<ReceivedFiles & { missing: string[] }> {
    const { id } = target
    const { files, links = [] } = pushed
    const manifest = new Bun.CryptoHasher('sha256').update(JSON.stringify([files, links])).digest('hex')
    const asked = this.#asked.get(id)
    const isKnown = archive !== null && asked?.manifest === manifest
    const changed = isKnown ? asked.changed : await compare(target, pushed)
    if (changed.length > 0) this.#asked.set(id, { manifest, changed })
    else this.#asked.delete(id)
    if (this.#staged.get(id)?.manifest !== manifest) await this.#discard(id)
    if (archive !== null) await this.#stage(target, manifest, pushed, archive)
    const staged = this.#staged.get(id)?.files
    const sent = staged?.paths ?? new Set<string>()
    const missing = changed.filter((path) => !sent.has(path))
    if (missing.length === 0) this.#asked.delete(id)
    return { missing, written: [...sent], tree: staged?.tree ?? null }
  }

  /** Notes that the files of a target have changed in another way than by a push. */
  noteChanged(id: string): void {
    this.#asked.delete(id)
    this.#changed.add(id)
  }

  /** Removes what is kept for a target. */
  async forget(id: string): Promise<void> {
    this.#asked.delete(id)
    this.#changed.delete(id)
    await this.#discard(id)
  }

  /** Removes what was sent. */
  async #discard(id: string): Promise<void> {
    const staged = this.#staged.get(id)
    this.#staged.delete(id)
    staged?.expiry?.cancel()
    await staged?.files[Symbol.asyncDispose]()
  }

  /** Unpacks an archive beside those of the same push that were sent before. */
  async #stage(
    { id, workspace, room }: PushTarget,
    manifest: string,
    { files, links = [], pieces = [] }: PushedFiles,
    archive: Uint8Array,
  ): Promise<void> {
    const { checkLinks } = await import('../projects/sources/tree.ts')
    checkLinks(new Map(links.map(({ path, target }) => [path, target])))
    const signal = AbortSignal.timeout(SOURCE_LIMITS.timeoutMs)
    let staged = this.#staged.get(id)
    if (staged === undefined) {
      const limits = { ...SOURCE_LIMITS, bytes: Math.min(SOURCE_LIMITS.bytes, await room()) }
      staged = { manifest, files: await StagedFiles.begin(workspace, limits), expiry: null }
      this.#staged.set(id, staged)
    }
    staged.expiry?.cancel()
    staged.expiry = this.#clock.after(STAGED_MS, () => this.#mutex.run(id, () => this.#discard(id)))
    const wanted = new Set([...files, ...links].map(({ path }) => path))
    await staged.files.add(archive, wanted, pieces, signal)
  }
}

/** Returns the number of bytes that a server's storage has left. */
export async function storageLeft(servers: ServersService, server: ServerRow): Promise<number> {
  return Math.max(0, servers.lifecycle.limits(server).storageBytes - (await servers.meter.current(server)))
}

/** Returns a BerthError 400 for an archive or a path that is refused; any other error unchanged. */
function refusalOf(error: unknown): unknown {
  if (error instanceof SourceError) return badRequest(`The archive is refused. ${error.message}`)
  if (error instanceof WorkspaceError && error.fault !== 'disk_full') return badRequest(error.message)
  return error
}

/** Returns the described paths that a directory lacks, or has with other content. */
async function compare(
  { workspace, directory }: PushTarget,
  { files, links = [] }: PushedFiles,
): Promise<string[]> {
  const paths = [...files, ...links].map(({ path }) => path)
  const present = await presentEntries(workspace, directory, paths)
  const described = files.map((file) => ({ size: 0, ...file, executable: file.executable ?? false }))
  return compareManifests({ files: described, links }, toManifest(present)).changed
}

/** A piece of a file, as a part of a push has it. */
interface FilePiece {
  readonly path: string
  /** Where in the file it belongs, in bytes. */
  readonly offset: number
  /** Whether others follow. */
  readonly more?: boolean | undefined
}

/** The content of a push that is sent in parts, as far as it was sent. */
class StagedFiles implements AsyncDisposable {
  readonly #staging: Staging
  readonly #limits: SourceLimits
  readonly #whole = new Set<string>()
  /** The number of bytes of each file of which pieces are still to come. */
  readonly #begun = new Map<string, number>()
  /** The directories above what was sent. */
  readonly #directories = new Set<string>()
  #bytes = 0

  static async begin(workspace: Workspace, limits: SourceLimits): Promise<StagedFiles> {
    const staging = await workspace.staging()
    await mkdir(join(staging.path, 'whole'), { mode: 0o700 })
    return new StagedFiles(staging, limits)
  }

  private constructor(staging: Staging, limits: SourceLimits) {
    this.#staging = staging
    this.#limits = limits
  }

  /** The paths of files and links that were sent completely. */
  get paths(): ReadonlySet<string> {
    return this.#whole
  }

  /** The directory with all that was sent, absolute. */
  get tree(): string {
    return join(this.#staging.path, 'whole')
  }

  /**
   * Adds an archive.
   *
   * @param wanted the paths that it may have
   * @param pieces those of its files that are pieces
   * @throws BerthError 400 for another path, or a piece that does not follow the one before; `SourceError`
   */
  async add(
    archive: Uint8Array,
    wanted: ReadonlySet<string>,
    pieces: readonly FilePiece[],
    signal: AbortSignal,
  ): Promise<void> {
    const { unpackAsIs } = await import('../projects/sources/archive/unpack.ts')
    const part = join(this.#staging.path, 'part')
    await mkdir(part, { mode: 0o700 })
    const file = join(part, 'archive')
    await Bun.write(file, archive)
    const { bytes, entries } = this.#limits
    const left = { ...this.#limits, bytes: bytes - this.#bytes, entries: entries - this.#whole.size }
    const { root, writer } = await unpackAsIs(file, part, left, signal)
    this.#bytes += writer.bytes
    const unwanted = writer.paths.find((path) => !wanted.has(path))
    if (unwanted !== undefined)
      throw badRequest(`The archive has ${JSON.stringify(unwanted)}, which is not in "files" or "links".`)
    const pieceAt = new Map(pieces.map((piece) => [piece.path, piece]))
    for (const path of writer.paths) {
      this.#checkAbove(path)
      await this.#take(join(root, path), path, pieceAt.get(path))
    }
    await rm(part, { recursive: true })
  }

  /** Throws BerthError 400 for a path below a file or a link, through which it could lead elsewhere. */
  #checkAbove(path: string): void {
    if (this.#directories.has(path)) throw badRequest(`${JSON.stringify(path)} is a directory, too.`)
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const above = path.slice(0, at)
      this.#directories.add(above)
      if (this.#whole.has(above) || this.#begun.has(above))
        throw badRequest(
          `${JSON.stringify(above)} is a file or a link, and ${JSON.stringify(path)} is below it.`,
        )
    }
  }

  async #take(from: string, path: string, piece: FilePiece | undefined): Promise<void> {
    const to = join(this.tree, path)
    const { offset = 0, more = false } = piece ?? {}
    const come = this.#begun.get(path) ?? 0
    if (offset !== 0 && offset !== come)
      throw badRequest(
        `The piece of ${JSON.stringify(path)} begins at byte ${offset}; ${come} have come before.`,
      )
    if (offset === 0) {
      await mkdir(dirname(to), { recursive: true })
      await rename(from, to)
    } else {
      const { O_WRONLY, O_APPEND, O_NOFOLLOW } = constants
      await using whole = await open(to, O_WRONLY | O_APPEND | O_NOFOLLOW)
      await whole.writeFile(await readFile(from))
    }
    if (more) this.#begun.set(path, (await lstat(to)).size)
    else {
      this.#begun.delete(path)
      this.#whole.add(path)
    }
  }

  /** Removes what was sent. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#staging[Symbol.asyncDispose]()
  }
}
