import type { ComputeConfig } from '../../config/compute.ts'
import type { ComputeDriver } from '../driver.ts'
import type { Engine } from './engine.ts'
import { EngineDriver, type EngineDriverOptions } from './engine-driver.ts'
import { ownImage } from './names.ts'

/** What the driver of an engine is made from. */
export interface OpenOptions extends Omit<EngineDriverOptions, 'engine' | 'name' | 'image' | 'leaseMs'> {
  readonly config: ComputeConfig
  /** The version of this berth. */
  readonly version: string
  /** The variables that berth was started with. */
  readonly variables?: Readonly<Record<string, string | undefined>>
}

/** An engine to which nothing was sent yet. */
export interface ReachableEngine {
  readonly engine: Engine
  /** What a person calls it, with its address. */
  readonly name: string
  /** Whether a socket of this machine leads there. */
  readonly isLocal: boolean
}

/** An engine with the driver of servers on it. */
export interface OpenedEngine extends ReachableEngine {
  readonly driver: ComputeDriver
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
