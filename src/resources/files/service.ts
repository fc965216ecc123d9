import {
  type Workspace,
  type WorkspaceEntry,
  WorkspaceError,
  type WorkspaceFault,
  type WorkspaceFile,
} from '../../compute/workspace.ts'
import { BASE64_WORDS } from '../../contract/schema.ts'
import { BerthError, badRequest, notFound } from '../../errors.ts'
import { readWhole } from '../../http/body.ts'
import type { Caller } from '../../http/caller.ts'
import { toIso } from '../../runtime/clock.ts'
import { isBase64, utf8Text } from '../../runtime/decode.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import { type FileManifest, toManifest } from './manifest.ts'
import type { FileContent, FileDetails, FileManifestQuery, FileWrite } from './model.ts'

/** Largest size of a file in a JSON response, in bytes. A command can split a larger one. @bound client */
const READ_LIMIT = 32 * 1024 * 1024

/** Bytes of a body of unknown length after which it is checked again that there is room for more. */
const CHECKED_BYTES = 8 * 1024 * 1024

/** Reads and writes the files of servers, running or asleep. */
export class FilesService {
  readonly #servers: ServersService

  constructor(servers: ServersService) {
    this.#servers = servers
  }

  /**
   * Returns the paths of all regular files, sorted.
   *
   * @param all whether to list what is in `.git` and `node_modules` directories too
   * @param withDetails whether to return sizes and times too
   * @throws BerthError 404, 413
   */
  async list(
    caller: Caller,
    serverId: string,
    { all, withDetails }: { all: boolean; withDetails: boolean },
  ): Promise<{ files: string[]; details?: FileDetails[] }> {
    const workspace = this.#workspace(this.#touch(caller, serverId))
    const files = await workspace.list({ all }).catch((error) => {
      if (error instanceof WorkspaceError && error.fault === 'too_large')
        throw new BerthError('payload_too_large', error.message)
      throw error
    })
    if (!withDetails) return { files }
    const details: FileDetails[] = []
    for (const path of files) {
      try {
        using file = await workspace.open(path)
        details.push({ path, size: file.size, modified_at: toIso(Math.floor(file.modifiedAt)) })
      } catch (error) {
        // It was removed meanwhile, or may not be read.
        if (!(error instanceof WorkspaceError)) throw error
      }
    }
    return { files, details }
  }

  /**
   * Describes files and links below a directory by their content.
   *
   * @throws BerthError 400, 404
   */
  async manifest(
    caller: Caller,
    serverId: string,
    { directory = '', paths }: FileManifestQuery,
  ): Promise<FileManifest> {
    const workspace = this.#workspace(this.#touch(caller, serverId))
    try {
      return toManifest(await workspace.manifest(directory, paths ?? null))
    } catch (error) {
      if (error instanceof WorkspaceError && error.fault === 'missing')
        throw notFound(`The directory ${JSON.stringify(directory)}`)
      if (error instanceof WorkspaceError && REFUSED.has(error.fault)) throw badRequest(error.message)
      throw error
    }
  }

  /**
   * Reads a file as text, or as base64 if it is not UTF-8.
   *
   * @throws BerthError 404, 413
   */
  async read(caller: Caller, serverId: string, path: string): Promise<FileContent> {
    const workspace = this.#workspace(this.#touch(caller, serverId))
    return this.#reading(path, async () => {
      const { size } = await fileAt(workspace, path, 'Leave "path" out to list all files.')
      if (size > READ_LIMIT) {
        throw new BerthError(
          'payload_too_large',
          `${JSON.stringify(path)} has ${size} bytes, more than the ${READ_LIMIT} of one response. GET /servers/{serverId}/files/content streams it.`,
        )
      }
      return { path, ...decode(await workspace.read(path, READ_LIMIT)) }
    })
  }

  /**
   * Opens a file of any size, to be read in parts. The caller disposes of it.
   *
   * @throws BerthError 404
   */
  async open(caller: Caller, serverId: string, path: string): Promise<WorkspaceFile> {
    const workspace = this.#workspace(this.#touch(caller, serverId))
    return this.#reading(path, async () => {
      await fileAt(workspace, path, 'GET /servers/{serverId}/files lists all files.')
      return workspace.open(path)
    })
  }

  /** Reads a file. @throws BerthError in place of a WorkspaceError */
  async #reading<Result>(path: string, read: () => Promise<Result>): Promise<Result> {
    try {
      return await read()
    } catch (error) {
      if (!(error instanceof WorkspaceError)) throw error
      // It has grown since.
      if (error.fault === 'too_large') throw new BerthError('payload_too_large', error.message)
      if (error.fault !== 'disk_full') throw missing(path)
      throw error
    }
  }

  /**
   * Writes a file atomically.
   *
   * @throws BerthError 400, 404
   */
  async write(caller: Caller, serverId: string, { path, content, encoding }: FileWrite): Promise<void> {
    const bytes = encode(content, encoding)
    const row = this.#touch(caller, serverId)
    await this.#checkRoom(row, path, bytes.byteLength)
    await this.#changing(() => this.#workspace(row).write(path, bytes))
    this.#servers.meter.grew(row, bytes.byteLength)
  }

  /**
   * Writes a file atomically, of any size that the storage holds, while it arrives.
   *
   * @param size bytes that are announced; null if that is not known
   * @throws BerthError 400, 404
   */
  async upload(
    caller: Caller,
    serverId: string,
    path: string,
    content: AsyncIterable<Uint8Array>,
    size: number | null,
  ): Promise<void> {
    const row = this.#touch(caller, serverId)
    await this.#checkRoom(row, path, size ?? 0)
    let arrived = 0
    let checked = Math.max(size ?? 0, CHECKED_BYTES)
    const check = (bytes: number) => this.#checkRoom(row, path, bytes)
    async function* counted(): AsyncGenerator<Uint8Array> {
      for await (const part of readWhole(content)) {
        arrived += part.byteLength
        if (arrived > checked) {
          checked = arrived + CHECKED_BYTES
          await check(checked)
        }
        yield part
      }
    }
    await this.#changing(() => this.#workspace(row).write(path, counted()))
    this.#servers.meter.grew(row, arrived)
  }

  /**
   * Removes a file or a directory with its content.
   *
   * @throws BerthError 400, 404
   */
  async delete(caller: Caller, serverId: string, path: string): Promise<void> {
    const row = this.#touch(caller, serverId)
    try {
      await this.#changing(() => this.#workspace(row).remove(path))
      this.#servers.meter.grew(row, 0)
    } catch (error) {
      if (error instanceof WorkspaceError && error.fault === 'missing')
        throw notFound(`The file ${JSON.stringify(path)}`)
      throw error
    }
  }

  #touch(caller: Caller, serverId: string): ServerRow {
    const row = this.#servers.getRow(caller, serverId)
    this.#servers.lifecycle.touch(serverId)
    return row
  }

  #workspace = (row: ServerRow) => this.#servers.workspace(row)

  async #changing(change: () => Promise<void>): Promise<void> {
    try {
      await change()
    } catch (error) {
      if (error instanceof WorkspaceError && REFUSED.has(error.fault)) throw badRequest(error.message)
      throw error
    }
  }

  /** The recorded size suffices if it leaves room. Near the limit the workspace is measured. */
  async #checkRoom(row: ServerRow, path: string, bytes: number): Promise<void> {
    const limit = this.#servers.lifecycle.limits(row).storageBytes
    if ((await this.#servers.meter.current(row)) + bytes <= limit) return
    const replaced = await this.#workspace(row)
      .stat(path)
      .catch(() => null)
    const measure = async (): Promise<number> =>
      limit - (await this.#servers.meter.measure(row)) + (replaced?.size ?? 0)
    if (bytes <= (await measure())) return
    await this.#servers.emptyCaches(row)
    const left = await measure()
    if (bytes <= left) return
    throw badRequest(
      `The server's storage is full: ${Math.max(0, left)} of ${limit} bytes are left, the file has ${bytes}. Remove files or use a larger tier.`,
    )
  }
}

const missing = (path: string): BerthError => notFound(`The file ${JSON.stringify(path)}`)

/** Returns the entry of a regular file. @throws BerthError 404; for a directory with the remedy */
async function fileAt(workspace: Workspace, path: string, remedy: string): Promise<WorkspaceEntry> {
  const entry = await workspace.stat(path)
  if (entry?.kind === 'directory') {
    throw new BerthError('not_found', `${JSON.stringify(path)} is a directory, not a file. ${remedy}`)
  }
  if (entry?.kind !== 'file') throw missing(path)
  return entry
}

const REFUSED: ReadonlySet<WorkspaceFault> = new Set([
  ...(['outside', 'not_a_file', 'root', 'invalid', 'too_large'] as const),
])

function encode(content: string, encoding: FileWrite['encoding']): Uint8Array {
  if (encoding !== 'base64') return new TextEncoder().encode(content)
  if (!isBase64(content)) {
    throw badRequest(`"content" in the body: expected ${BASE64_WORDS}, as "encoding" says.`)
  }
  return Buffer.from(content, 'base64')
}

function decode(bytes: Uint8Array): Pick<FileContent, 'content' | 'encoding'> {
  const content = utf8Text(bytes)
  return content === null
    ? { content: Buffer.from(bytes).toString('base64'), encoding: 'base64' }
    : { content }
}
