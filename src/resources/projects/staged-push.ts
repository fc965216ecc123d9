import { constants } from 'node:fs'
import { lstat, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Staging, Workspace } from '../../compute/workspace.ts'
import { badRequest } from '../../errors.ts'
import type { SourceLimits } from './sources/limits.ts'

/** A piece of a file, as a part of a push has it. */
export interface FilePiece {
  readonly path: string
  /** Where in the file it belongs, in bytes. */
  readonly offset: number
  /** Whether others follow. */
  readonly more?: boolean | undefined
}

/** The content of a push that is sent in parts, as far as it has come. */
export class StagedPush implements AsyncDisposable {
  readonly #staging: Staging
  readonly #limits: SourceLimits
  readonly #whole = new Set<string>()
  /** The number of bytes of each file of which pieces are still to come. */
  readonly #begun = new Map<string, number>()
  /** The directories above what has come. */
  readonly #directories = new Set<string>()
  #bytes = 0

  static async begin(workspace: Workspace, limits: SourceLimits): Promise<StagedPush> {
    const staging = await workspace.staging()
    await mkdir(join(staging.path, 'whole'), { mode: 0o700 })
    return new StagedPush(staging, limits)
  }

  private constructor(staging: Staging, limits: SourceLimits) {
    this.#staging = staging
    this.#limits = limits
  }

  /** The paths of files and links that have come completely. */
  get paths(): ReadonlySet<string> {
    return this.#whole
  }

  /** The directory with all that has come, absolute. */
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
    const { unpackAsIs } = await import('./sources/archive/unpack.ts')
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

  /** Removes what has come. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#staging[Symbol.asyncDispose]()
  }
}
