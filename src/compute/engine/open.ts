import type { ComputeConfig } from '../../config/compute.ts'
import type { ComputeDriver } from '../driver.ts'
import type { Engine } from './engine.ts'
import type { EngineDriverOptions } from './engine-driver.ts'

/** What the driver of an engine is made from. */
export interface OpenOptions extends Omit<EngineDriverOptions, 'engine' | 'name' | 'image' | 'leaseMs'> {
  readonly config: ComputeConfig
  /** The version of this berth. */
  readonly version: string
  /** The variables that berth was started with. */
  readonly variables?: Readonly<Record<string, string | undefined>>
}

/** The driver of an engine to which nothing was sent yet. */
export interface OpenedEngine {
  readonly driver: ComputeDriver
  readonly engine: Engine
  /** Whether a socket of this machine leads there. */
  readonly isLocal: boolean
  /** Reports whether it has the image of servers. Throws `ComputeError`. */
  hasImage(): Promise<boolean>
}
