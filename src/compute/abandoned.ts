import { realpathSync } from 'node:fs'
import { ifPresent } from '../runtime/if-present.ts'
import { findAbandoned, removeTemporary } from '../storage/ephemeral.ts'
import { allDataFolderGroups, removeGroups } from './limits/groups.ts'
import { dataMarkerOf } from './local/server-folders.ts'

/**
 * Removes what instances on temporary folders have left that were killed: the control groups of their servers, then
 * the folders. A folder stays where something of its servers still runs: it tells whose that is. Other berths may do
 * the same at the same time: a folder that is gone is passed over.
 *
 * @param now milliseconds since 1970, by the machine
 */
export function removeAbandoned(temporaryDir: string, now: number): void {
  const folders = findAbandoned(temporaryDir, now)
  if (folders.length === 0) return
  const groups = allDataFolderGroups()
  for (const folder of folders) {
    const path = ifPresent(() => realpathSync(folder))
    if (path === null) continue
    const marker = dataMarkerOf(path)
    const own = groups.filter(({ dataMarker }) => dataMarker === marker)
    if (removeGroups(own.flatMap((group) => group.groups))) removeTemporary(folder)
  }
}
