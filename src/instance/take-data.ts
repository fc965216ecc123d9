import { tmpdir } from 'node:os'
import type { Config } from '../config/config.ts'
import { type ClockState, machineNow } from '../runtime/clock.ts'
import {
  type DataDirectory,
  type EphemeralDirectory,
  type Heartbeat,
  makeEphemeral,
  NO_HEARTBEAT,
  openHeartbeat,
  takeDataDirectory,
  untilGivenBack,
} from '../storage/data-directory.ts'

/** The data directory of a berth, and what differs for one that is used once. */
interface TakenData {
  readonly dataDirectory: DataDirectory
  readonly isEphemeral: boolean
  /** The clock of the snapshot that it was filled with; null without one. */
  readonly clock: ClockState | null
  /** Where the time of a kill is found; null if this system has no place for it. */
  readonly heartbeat: Heartbeat | null
  /** Notes that the start succeeded: otherwise, a directory that it created is removed. */
  keep(): void
  /** Removes an ephemeral directory at once, as far as that is possible. */
  abandon(): void
  /** For an ephemeral directory, removes those that killed berths left. */
  removeAbandoned(): Promise<void>
}

/**
 * Takes the data directory, or creates an ephemeral one. Waits if the berth before is still giving it back. Fills it with
 * the snapshot that the configuration names.
 *
 * @param onRelease has a function called when the directory is not needed any more
 * @throws StartupError if it cannot be used
 */
export async function takeData(
  config: Pick<Config, 'ephemeral' | 'dataDir' | 'snapshot'>,
  { temporaryDir = tmpdir() }: { temporaryDir?: string },
  onRelease: (release: () => void) => void,
): Promise<TakenData> {
  const ephemeral: EphemeralDirectory | null = config.ephemeral ? makeEphemeral(temporaryDir) : null
  if (ephemeral) onRelease(() => ephemeral.remove())
  else await untilGivenBack(config.dataDir)
  const dataDirectory = takeDataDirectory(ephemeral?.path ?? config.dataDir)
  let hasStarted = false
  onRelease(() => (hasStarted ? dataDirectory.release() : dataDirectory.discard()))
  const clock =
    config.snapshot === null
      ? null
      : await (await import('./start-from-snapshot.ts')).startFromSnapshot(
          dataDirectory.path,
          config.snapshot,
        )
  const heartbeat = ephemeral ? null : openHeartbeat(dataDirectory.path)
  if (heartbeat) onRelease(() => heartbeat.close())
  return {
    dataDirectory,
    isEphemeral: ephemeral !== null,
    clock,
    // Nobody starts on an ephemeral directory again.
    heartbeat: ephemeral ? NO_HEARTBEAT : heartbeat,
    keep() {
      hasStarted = true
    },
    abandon: () => ephemeral?.remove(),
    async removeAbandoned() {
      if (!ephemeral) return
      const { removeAbandoned } = await import('./abandoned.ts')
      removeAbandoned(temporaryDir, machineNow())
    },
  }
}
