import { tmpdir } from 'node:os'
import { type EndedDirectory, type EngineRemain, loadEngineRemains } from '../compute/compute.ts'
import { hasEngineNotes } from '../compute/remains.ts'
import { loadConfig } from '../config/load.ts'
import { explanationOf } from '../errors.ts'
import { makeTemporary } from '../storage/data-directory.ts'
import { removeTree } from '../storage/files.ts'
import { CommandError } from './errors.ts'
import { printable } from './output.ts'
import type { ProcessContext } from './process-context.ts'
import { versionInfo } from './version.ts'

/** What says which engine is asked, where a flag does. */
interface EngineFlags {
  data?: string | undefined
  compute?: string | undefined
  engine?: string | undefined
}

/** What ended instances have left on an engine. Disposing of it ends the connection. */
export class EngineLeaks implements AsyncDisposable {
  readonly #directory: string | null
  #remains: readonly EngineRemain[]
  #unknown: readonly EndedDirectory[]

  /**
   * Asks the engine that is configured, if a server of one of the directories was ever on one. Where it does not respond, it
   * says so on the standard error.
   *
   * @throws CommandError if it does not respond and a flag asks for it
   */
  static async find(
    directories: readonly EndedDirectory[],
    context: ProcessContext,
    flags: EngineFlags,
  ): Promise<EngineLeaks> {
    const noted = directories.filter(({ path }) => hasEngineNotes(path))
    if (noted.length === 0) return new EngineLeaks(null, [], [])
    const { findEngineRemains } = await loadEngineRemains()
    const { env, cwd, stderr } = context
    const given = Object.entries(flags).filter(([, value]) => value !== undefined)
    const config = loadConfig({ flags: Object.fromEntries(given), env, cwd })
    const directory = makeTemporary(tmpdir(), 'berth-engine-')
    try {
      const choice = { config, variables: env, version: versionInfo().version, directory }
      return new EngineLeaks(directory, await findEngineRemains(choice, noted), [])
    } catch (error) {
      removeTree(directory)
      const explanation = explanationOf(error)
      if (explanation === null) throw error
      if (flags.compute !== undefined || flags.engine !== undefined) throw new CommandError(explanation)
      await stderr.write(`berth: What servers have left on an engine is unknown: ${printable(explanation)}\n`)
      return new EngineLeaks(null, [], noted)
    }
  }

  private constructor(
    directory: string | null,
    remains: readonly EngineRemain[],
    unknown: readonly EndedDirectory[],
  ) {
    this.#directory = directory
    this.#remains = remains
    this.#unknown = unknown
  }

  /** What is there. */
  get leaks(): { kind: EngineRemain['kind']; id: string; detail: string; remedy: string }[] {
    return this.#remains.map(({ kind, name, server, dataDir, remedy }) => ({
      kind,
      id: name,
      detail: `of the server ${server} on ${dataDir}`,
      remedy,
    }))
  }

  /** The data directories that name what is there, or may be there. */
  get directories(): ReadonlySet<string> {
    return new Set([...this.#remains.map(({ dataDir }) => dataDir), ...this.#unknown.map(({ path }) => path)])
  }

  /** Removes it, as far as possible: containers first, whose volumes are free then. @param ended returns the directories on which no instance runs by now */
  async remove(ended: () => readonly EndedDirectory[]): Promise<void> {
    const left: EngineRemain[] = []
    for (const remain of this.#remains) {
      const isEnded = ended().some(({ path }) => path === remain.dataDir)
      const isGone =
        isEnded &&
        (await remain
          .remove()
          .then(() => true)
          .catch(() => false))
      if (isEnded && !isGone) left.push(remain)
    }
    this.#remains = left
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#directory !== null) removeTree(this.#directory)
  }
}
