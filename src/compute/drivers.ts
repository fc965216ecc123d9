import type { Logger } from '../runtime/logger.ts'
import { BubblewrapTier } from './bubblewrap/tier.ts'
import type { ComputeDriver } from './driver.ts'
import { LandlockTier } from './landlock/tier.ts'
import { LocalDriver } from './local/driver.ts'
import { LocalWorkspace } from './local/workspace.ts'
import { PlainTier } from './none/tier.ts'
import type { SelfCommand } from './self.ts'

/** What the process around berth provides to compute. */
export interface ComputeSurroundings {
  /** How berth starts itself again. */
  self: SelfCommand
  /** The PATH that berth was started with. */
  path: string
}

/** The drivers that run servers on this machine, strongest isolation first. */
export function localDrivers(
  options: ComputeSurroundings & { dataDir: string; logger: Logger },
): ComputeDriver[] {
  const all = { ...options, workspace: (folder: string) => new LocalWorkspace(folder) }
  return [new BubblewrapTier(all), new LandlockTier(all), new PlainTier(all)].map(
    (tier) => new LocalDriver(tier, all),
  )
}
