import { tmpdir } from 'node:os'
import {
  type EngineDirectory,
  type EngineRemain,
  type EngineRemains,
  loadEngineRemains,
} from '../compute/compute.ts'
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

/** Something on an engine, as it is shown to a person. */
interface ShownRemain {
  kind: EngineRemain['kind']
  /** Its name. */
  id: string
  detail: string
  remedy: string
}

const shown = ({ kind, name, server, dataDir, remedy }: EngineRemain): ShownRemain => ({
  kind,
  id: name,
  detail: `of the server ${server} on ${dataDir}`,
  remedy,
})

const NOTHING: EngineRemains = { left: [], kept: [] }

/** What no instance uses of what is on an engine. Disposing of it ends the connection. */
export class EngineLeaks implements AsyncDisposable {
  readonly #directory: string | null
  #left: readonly EngineRemain[]
  readonly #kept: readonly EngineRemain[]
  readonly #unknown: readonly EngineDirectory[]

  /**
   * Asks the engine that is configured, if a server of one of the directories was ever on one. Where it does not respond, it
   * says so on the standard error.
   *
   * @throws CommandError if it does not respond and a flag asks for it
   */
  static async find(
    directories: readonly EngineDirectory[],
    context: ProcessContext,
    flags: EngineFlags,
  ): Promise<EngineLeaks> {
    const noted = directories.filter(({ path }) => hasEngineNotes(path))
    if (noted.length === 0) return new EngineLeaks(null, NOTHING, [])
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
      return new EngineLeaks(null, NOTHING, noted)
    }
  }

  private constructor(
    directory: string | null,
    { left, kept }: EngineRemains,
    unknown: readonly EngineDirectory[],
  ) {
    this.#directory = directory
    this.#left = left
    this.#kept = kept
    this.#unknown = unknown
  }

  /** What ended instances have left there. */
  get leaks(): ShownRemain[] {
    return this.#left.map(shown)
  }

  /** The volumes there that no database names. */
  get kept(): ShownRemain[] {
    return this.#kept.map((remain) => {
      const { detail, ...rest } = shown(remain)
      return { ...rest, detail: `${detail}, whose database does not name it` }
    })
  }

  /** The data directories that name what is there, or may be there. */
  get directories(): ReadonlySet<string> {
    return new Set([...this.#left.map(({ dataDir }) => dataDir), ...this.#unknown.map(({ path }) => path)])
  }

  /** Removes it, as far as possible: containers first, whose volumes are free then. @param ended returns the directories on which no instance runs by now */
  async remove(ended: () => readonly EngineDirectory[]): Promise<void> {
    const left: EngineRemain[] = []
    for (const remain of this.#left) {
      const isEnded = ended().some(({ path }) => path === remain.dataDir)
      const isGone =
        isEnded &&
        (await remain
          .remove()
          .then(() => true)
          .catch(() => false))
      if (isEnded && !isGone) left.push(remain)
    }
    this.#left = left
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#directory !== null) removeTree(this.#directory)
  }
}
