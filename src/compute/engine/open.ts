import type { ComputeConfig } from '../../config/compute.ts'
import type { Engine } from './engine.ts'
import { EngineDriver, type EngineDriverOptions } from './engine-driver.ts'
import { ownImage } from './names.ts'

/** What says which engine a person means. */
export interface EngineChoice {
  readonly config: ComputeConfig
  /** The variables that berth was started with. */
  readonly variables: Readonly<Record<string, string | undefined>>
  /** The version of this berth. */
  readonly version: string
  /** Absolute path of a directory of this user alone. */
  readonly directory: string
}

/** What the driver of an engine is made from. */
export interface OpenOptions
  extends Omit<EngineDriverOptions, 'engine' | 'name' | 'image' | 'leaseMs'>,
    Pick<EngineChoice, 'config' | 'version'>,
    Partial<Pick<EngineChoice, 'variables'>> {}

/** What was tried of an engine. */
export interface EngineFinding {
  /** The tried thing, in a word. */
  readonly name: string
  /** The result, in words. */
  readonly detail: string
  /** What a person can do for more; null if nothing lacks. */
  readonly remedy: string | null
}

/** An engine to which nothing was sent yet. */
export interface ReachableEngine {
  readonly engine: Engine
  /** What a person calls it, with its address. */
  readonly name: string
  /** Whether a socket of this machine leads there. */
  readonly isLocal: boolean
  /**
   * Tries what only servers of a driver show of the engine, and removes them. Missing where `probe` shows all. Throws
   * `ComputeError` if they do not start.
   *
   * @param onStep called before each step, with what is done, for a person
   */
  readonly examine?: (
    driver: EngineDriver,
    onStep: (step: string) => void,
  ) => Promise<readonly EngineFinding[]>
}

/** An engine with the driver of servers on it. */
export interface OpenedEngine extends ReachableEngine {
  readonly driver: EngineDriver
  /** Reports whether it may have the image of servers. Throws `ComputeError`. */
  hasImage(): Promise<boolean>
}

/** Makes the driver of servers on an engine. */
export function withDriver(found: ReachableEngine, options: OpenOptions): OpenedEngine {
  const { config, version } = options
  const image = config.serverImage ?? ownImage(version)
  return {
    ...found,
    driver: new EngineDriver({ ...options, ...found, image, leaseMs: config.serverLeaseMs }),
    hasImage: async () => (await found.engine.hasImage(image)) ?? true,
  }
}
