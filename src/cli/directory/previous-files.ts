import type { Client } from '../client.ts'
import { feedRemote, RemoteShell, runRemote } from '../copy/remote.ts'
import { CommandError } from '../errors.ts'
import { removeFiles } from './upload.ts'

/** Largest size of the files that are kept, as an archive in bytes. */
const MAX_KEPT_BYTES = 128 * 1024 * 1024

/** Files of a server's workspace as they were before they are replaced or removed, kept in memory. */
export class PreviousFiles {
  readonly #client: Client
  readonly #serverId: string
  readonly #archive: readonly Uint8Array[]
  readonly #added: readonly string[]

  private constructor(
    client: Client,
    serverId: string,
    archive: readonly Uint8Array[],
    added: readonly string[],
  ) {
    this.#client = client
    this.#serverId = serverId
    this.#archive = archive
    this.#added = added
  }

  /**
   * Reads files with their modes and times, by the server's `tar`.
   *
   * @param present paths of files and links that are there
   * @param added paths that are about to be added
   * @returns null if they cannot be kept: there is too much, or no `tar`
   */
  static async keep(
    client: Client,
    serverId: string,
    { present, added }: { present: readonly string[]; added: readonly string[] },
  ): Promise<PreviousFiles | null> {
    if (present.length === 0) return new PreviousFiles(client, serverId, [], added)
    const stop = new AbortController()
    const names = new Blob([present.map((path) => `./${path}\0`).join('')])
    const command = 'exec tar --null --no-recursion -cf - -T -'
    const chunks: Uint8Array[] = []
    let bytes = 0
    try {
      for await (const chunk of runRemote(
        new RemoteShell(client, serverId, stop.signal),
        command,
        names.stream(),
      )) {
        bytes += chunk.length
        if (bytes > MAX_KEPT_BYTES) return null
        chunks.push(chunk)
      }
    } catch (error) {
      if (error instanceof CommandError) return null
      throw error
    } finally {
      stop.abort()
    }
    return new PreviousFiles(client, serverId, chunks, added)
  }

  /** Puts the files back, and removes those that were added. @throws CommandError */
  async putBack(): Promise<void> {
    await removeFiles(this.#client, this.#serverId, this.#added)
    if (this.#archive.length === 0) return
    const shell = new RemoteShell(this.#client, this.#serverId, new AbortController().signal)
    await feedRemote(shell, 'exec tar -xpof -', this.#pieces())
  }

  async *#pieces(): AsyncGenerator<Uint8Array> {
    yield* this.#archive
  }
}
