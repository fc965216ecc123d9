import { realpathSync } from 'node:fs'
import { allDataDirectoryGroups, dataMarkerOf, hasEngineNotes, removeGroups } from '../compute/remains.ts'
import { ifPresent } from '../runtime/if-present.ts'
import { findAbandoned, removeTemporary } from '../storage/data-directory.ts'

/**
 * Removes what killed instances left: temporary data directories and the control groups of their servers. Keeps a
 * directory while one of its servers' processes still runs, so its owner can be found, and one that has had servers on an
 * engine: nothing else names their volumes. Other instances may do the
 * same at the same time, so a directory that has vanished is skipped.
 *
 * @param now milliseconds since 1970, by the system clock
 */
export function removeAbandoned(temporaryDir: string, now: number): void {
  const directories = findAbandoned(temporaryDir, now)
  if (directories.length === 0) return
  const groups = allDataDirectoryGroups()
  for (const dir of directories) {
    const path = ifPresent(() => realpathSync(dir))
    if (path === null || hasEngineNotes(path)) continue
    const marker = dataMarkerOf(path)
    const own = groups.filter(({ dataMarker }) => dataMarker === marker)
    if (removeGroups(own.flatMap((group) => group.groups))) removeTemporary(dir)
  }
}
