import { join } from 'node:path'
import { fieldsOf } from '../../runtime/is-object.ts'
import { createLogger } from '../../runtime/logger.ts'
import { handlesIn, hasDatabase } from '../../storage/state.ts'
import { NO_PROVISIONS, openEngine } from '../drivers.ts'
import type { Engine, EngineInventory, EngineName } from './engine.ts'
import type { EngineChoice } from './open.ts'
import { EngineNotes } from './owner.ts'

/** A data directory whose servers may be on an engine. */
export interface EngineDirectory {
  /** Absolute path. */
  readonly path: string
  /** Whether a berth runs on it. */
  readonly isLive: boolean
  /** Whether nobody starts there again: it was one for a single run. */
  readonly isAbandoned: boolean
}

/** Something on an engine that no berth uses. */
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

/** What an engine has that no berth uses. */
export interface EngineRemains {
  /** What ended berths left: every container, and every volume that is nobody's. */
  readonly left: EngineRemain[]
  /** Volumes that the database does not name, as when it is older than they are: another copy of it may. */
  readonly kept: EngineRemain[]
}

/**
 * Finds what no berth uses on the engine that a person means, by the labels of data directories. Of those on which a berth
 * runs, nothing is `left`.
 *
 * @throws ComputeError if the engine does not respond
 * @throws StartupError for settings that cannot be used
 */
export async function findEngineRemains(
  { config, directory, ...choice }: EngineChoice,
  directories: readonly EngineDirectory[],
): Promise<EngineRemains> {
  const compute: EngineName = config.compute === 'kubernetes' ? 'kubernetes' : 'docker'
  const logger = createLogger('silent', () => {}, Date.now)
  const { engine } = await openEngine(compute, {
    ...{ config, logger, ephemeral: true, dataDir: directory },
    ...choice,
    ...NO_PROVISIONS,
  })
  const found: EngineRemains = { left: [], kept: [] }
  for (const directory of directories) {
    const { path, isLive, isAbandoned } = directory
    const notes = new EngineNotes(path)
    if (!notes.hasOwner) continue
    const inventory = await engine.list(notes.owner)
    const isLost = !isLive && !hasDatabase(join(path, 'berth.db'))
    // After the list and in this order: what is being made is begun until the database names it.
    const begun = isLost ? NONE : notes.begun
    const named = isLost ? { needed: NONE, doomed: NONE } : namedIn(path)
    const storages = (isWanted: (storage: EngineInventory['storages'][number]) => boolean) =>
      inventory.storages.filter(isWanted).map((storage) => remainOf(engine, storage, path))
    if (!isLive) {
      const isBlank = (name: string): boolean =>
        named !== null && (begun.has(name) || named.doomed.has(name)) && !named.needed.has(name)
      found.left.push(
        ...instancesOf(engine, inventory, path),
        ...storages(({ name, labels }) => (isAbandoned && labels.ephemeral) || isBlank(name)),
      )
    }
    if (named === null || isAbandoned) continue
    const unnamed = storages(
      ({ name }) => !begun.has(name) && !named.needed.has(name) && !named.doomed.has(name),
    )
    // The database of a berth that runs does not name one any more that it has removed meanwhile.
    for (const storage of unnamed) if (await engine.hasStorage(storage.name)) found.kept.push(storage)
  }
  return found
}

const NONE: ReadonlySet<string> = new Set()

const instancesOf = (engine: Engine, { instances }: EngineInventory, path: string) =>
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

const remainOf = (
  engine: Engine,
  { name, labels }: EngineInventory['storages'][number],
  path: string,
): EngineRemain => ({
  kind: engine.name === 'kubernetes' ? 'claim' : 'volume',
  name,
  server: labels.server,
  dataDir: path,
  remedy: engine.removalOf('storage', name),
  remove: async () => {
    await engine.removeStorage(name)
    new EngineNotes(path).end(name)
  },
})

/**
 * Returns the storages that the database of a data directory names: those of servers, and those that are to be removed; null
 * if that is unknown.
 */
function namedIn(path: string): { needed: Set<string>; doomed: Set<string> } | null {
  try {
    const handles = handlesIn(path)
    return handles && { needed: storagesIn(handles.needed), doomed: storagesIn(handles.doomed) }
  } catch {
    // A start reports what is wrong with the database.
    return null
  }
}

const storagesIn = (handles: readonly string[]): Set<string> =>
  new Set(
    handles.flatMap((text) => {
      const { storage } = fieldsOf(JSON.parse(text))
      return typeof storage === 'string' ? [storage] : []
    }),
  )
