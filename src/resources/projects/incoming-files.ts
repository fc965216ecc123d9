import { type Workspace, WorkspaceError } from '../../compute/workspace.ts'
import { badRequest } from '../../errors.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { compareManifests, toManifest } from '../files/manifest.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import type { PushedFiles } from './model.ts'
import { presentEntries } from './previous-code.ts'
import { SourceError } from './sources/errors.ts'
import { SOURCE_LIMITS } from './sources/limits.ts'
import { StagedPush } from './staged-push.ts'

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

/** What has come of the files that a client describes. */
interface ReceivedFiles {
  /** Paths whose content is still to be sent. */
  readonly missing: string[]
  /** Paths of the files and links that have come. */
  readonly written: readonly string[]
  /** Directory with these, absolute, ready to be merged; null if there are none. */
  readonly tree: string | null
}

/** Milliseconds after which the parts of a push that is not continued are removed. */
const STAGED_MS = 10 * 60_000

/** The parts of a push that have come. */
interface StagedParts {
  /** Identifies the files and links that are described. */
  readonly manifest: string
  readonly push: StagedPush
  expiry: Timer | null
}

/**
 * Receives the files that clients send for directories. A client first describes all files, learns which of them are
 * missing there, and sends those in one part or several. Only one call for a target may run at a time.
 */
export class IncomingFiles {
  readonly #clock: Clock
  /** Called to remove parts that have come and are not continued, while no other call for the target runs. */
  readonly #exclusively: (id: string, run: () => Promise<void>) => Promise<void>
  /** What a target lacked when it was asked last: a client sends that next, with the same manifest. */
  readonly #asked = new Map<string, { manifest: string; changed: string[] }>()
  readonly #staged = new Map<string, StagedParts>()

  constructor(clock: Clock, exclusively: (id: string, run: () => Promise<void>) => Promise<void>) {
    this.#clock = clock
    this.#exclusively = exclusively
  }

  /**
   * Takes a part, and returns what has come and what is missing.
   *
   * @param archive the content of files that differ, and of no others that the manifest lacks
   * @throws BerthError 400, `SourceError` and `WorkspaceError` for a path or an archive that is refused
   */
  async receive(target: PushTarget, pushed: PushedFiles, archive: Uint8Array | null): Promise<ReceivedFiles> {
    const { id } = target
    const { files, links = [] } = pushed
    const manifest = new Bun.CryptoHasher('sha256').update(JSON.stringify([files, links])).digest('hex')
    const asked = this.#asked.get(id)
    const isKnown = archive !== null && asked?.manifest === manifest
    const changed = isKnown ? asked.changed : await compare(target, pushed)
    if (changed.length > 0) this.#asked.set(id, { manifest, changed })
    else this.#asked.delete(id)
    if (this.#staged.get(id)?.manifest !== manifest) await this.discard(id)
    if (archive !== null) await this.#stage(target, manifest, pushed, archive)
    const staged = this.#staged.get(id)?.push
    const sent = staged?.paths ?? new Set<string>()
    const missing = changed.filter((path) => !sent.has(path))
    if (missing.length === 0) this.#asked.delete(id)
    return { missing, written: [...sent], tree: staged?.tree ?? null }
  }

  /** Returns the paths that are missing beside those that have come, because the directory has changed meanwhile. */
  async missingNow(target: PushTarget, pushed: PushedFiles, { written }: ReceivedFiles): Promise<string[]> {
    const sent = new Set(written)
    return (await compare(target, pushed)).filter((path) => !sent.has(path))
  }

  /** Forgets which files a target lacked, because they have changed. */
  forgetMissing(id: string): void {
    this.#asked.delete(id)
  }

  /** Removes what has come. */
  async discard(id: string): Promise<void> {
    const staged = this.#staged.get(id)
    this.#staged.delete(id)
    staged?.expiry?.cancel()
    await staged?.push[Symbol.asyncDispose]()
  }

  /** Unpacks an archive beside those of the same push that came before. */
  async #stage(
    { id, workspace, room }: PushTarget,
    manifest: string,
    { files, links = [], pieces = [] }: PushedFiles,
    archive: Uint8Array,
  ): Promise<void> {
    const { checkLinks } = await import('./sources/tree.ts')
    checkLinks(new Map(links.map(({ path, target }) => [path, target])))
    const signal = AbortSignal.timeout(SOURCE_LIMITS.timeoutMs)
    let staged = this.#staged.get(id)
    if (staged === undefined) {
      const limits = { ...SOURCE_LIMITS, bytes: Math.min(SOURCE_LIMITS.bytes, await room()) }
      staged = { manifest, push: await StagedPush.begin(workspace, limits), expiry: null }
      this.#staged.set(id, staged)
    }
    staged.expiry?.cancel()
    staged.expiry = this.#clock.after(STAGED_MS, () => this.#exclusively(id, () => this.discard(id)))
    const wanted = new Set([...files, ...links].map(({ path }) => path))
    await staged.push.add(archive, wanted, pieces, signal)
  }
}

/** Returns the number of bytes that a server's storage has left. */
export async function storageLeft(servers: ServersService, server: ServerRow): Promise<number> {
  return Math.max(0, servers.lifecycle.limits(server).storageBytes - (await servers.meter.current(server)))
}

/** Returns a BerthError 400 for an archive or a path that is refused; any other error unchanged. */
export function refusalOf(error: unknown): unknown {
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
