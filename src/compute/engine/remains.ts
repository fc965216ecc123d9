import type { ComputeConfig } from '../../config/compute.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import { createLogger } from '../../runtime/logger.ts'
import { handlesIn } from '../../storage/state.ts'
import { NO_PROVISIONS, openEngine } from '../drivers.ts'
import type { Engine, EngineInventory, EngineName } from './engine.ts'
import { EngineNotes } from './owner.ts'

/** A data directory on which no berth runs. */
export interface EndedDirectory {
  /** Absolute path. */
  readonly path: string
  /** Whether nobody starts there again: it was one for a single run. */
  readonly isAbandoned: boolean
}

/** Something that an ended berth has left on an engine. */
export interface EngineRemain {
  readonly kind: 'container' | 'pod' | 'volume' | 'claim'
  readonly name: string
  /** The id of its server. */
  readonly server: string
  /** The data directory of that. */
  readonly dataDir: string
  /** The command by which a person removes it. */
  readonly remedy: string
  /** Removes it; resolves when it is gone. Throws `ComputeError`. */
  remove(): Promise<void>
}

/** What says which engine is asked. */
export interface EngineChoice {
  readonly config: ComputeConfig
  /** The variables that berth was started with. */
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly version: string
  /** Absolute path of a directory of this user alone. */
  readonly directory: string
}

/**
 * Finds what berths that have ended left on the engine that a person means, by the labels of their data directories: every
 * container, and every volume that is nobody's. The volumes of servers stay, as do those that the database does not name.
 *
 * @throws ComputeError if the engine does not respond
 * @throws StartupError for settings that cannot be used
 */
export async function findEngineRemains(
  { config, directory, ...choice }: EngineChoice,
  directories: readonly EndedDirectory[],
): Promise<EngineRemain[]> {
  const compute: EngineName = config.compute === 'kubernetes' ? 'kubernetes' : 'docker'
  const logger = createLogger('silent', () => {}, Date.now)
  const { engine } = await openEngine(compute, {
    ...{ config, logger, ephemeral: true, dataDir: directory },
    ...choice,
    ...NO_PROVISIONS,
  })
  const found: EngineRemain[] = []
  for (const ended of directories) {
    const notes = new EngineNotes(ended.path)
    if (!notes.hasOwner) continue
    const inventory = await engine.list(notes.owner)
    found.push(
      ...instancesOf(engine, inventory, ended),
      ...storagesOf(engine, inventory, ended, blankOf(notes, ended)),
    )
  }
  return found
}

const instancesOf = (engine: Engine, { instances }: EngineInventory, { path }: EndedDirectory) =>
  instances.map((instance): EngineRemain => {
    const isPod = engine.name === 'kubernetes'
    return {
      kind: isPod ? 'pod' : 'container',
      name: instance.name,
      server: instance.labels.server,
      dataDir: path,
      remedy: engine.removalOf('instance', instance.name),
      remove: () => engine.remove(instance),
    }
  })

const storagesOf = (
  engine: Engine,
  { storages }: EngineInventory,
  { path, isAbandoned }: EndedDirectory,
  blank: ReadonlySet<string>,
) =>
  storages
    .filter(({ name, labels }) => (isAbandoned && labels.ephemeral) || blank.has(name))
    .map(({ name, labels }): EngineRemain => {
      const isClaim = engine.name === 'kubernetes'
      return {
        kind: isClaim ? 'claim' : 'volume',
        name,
        server: labels.server,
        dataDir: path,
        remedy: engine.removalOf('storage', name),
        remove: async () => {
          await engine.removeStorage(name)
          new EngineNotes(path).end(name)
        },
      }
    })

/** Returns the storages that no server has: those of a creation that did not end, and those that were to be removed. */
function blankOf({ begun }: EngineNotes, { path }: EndedDirectory): Set<string> {
  try {
    const { needed, doomed } = handlesIn(path)
    const owned = storagesIn(needed)
    const removed = storagesIn(doomed)
    return new Set([...begun, ...removed].filter((name) => !owned.has(name)))
  } catch {
    // Whose they are is unknown. A start reports what is wrong with the database.
    return new Set()
  }
}

const storagesIn = (handles: readonly string[]): Set<string> =>
  new Set(
    handles.flatMap((text) => {
      const { storage } = fieldsOf(JSON.parse(text))
      return typeof storage === 'string' ? [storage] : []
    }),
  )
