import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { ifPresent } from '../../runtime/if-present.ts'
import { type Mount, readMounts, readUserMap } from '../../system/linux/mounts.ts'
import { listProcesses } from '../processes.ts'

/** Where sandboxes with a mount namespace have their workspace. */
export const WORKSPACE = '/workspace'

/** A process that has the workspace of a server mounted. */
interface Occupant {
  pid: number
  serverId: string
}

/**
 * Finds the processes that have workspaces of a data directory mounted, as sandboxes have them. This finds what has
 * neither the marker nor its parents any more, in user namespaces other than this process's.
 *
 * @param dataDir absolute path of the data directory
 */
export function findOccupants(dataDir: string): Occupant[] {
  const servers = ifPresent(() => realpathSync(join(dataDir, 'servers')))
  const place = servers === null ? null : locate(servers, readMounts('self'))
  if (place === null) return []
  const ownMap = readUserMap('self')
  return listProcesses().flatMap(({ pid }) => {
    const map = readUserMap(pid)
    if (map === null || map === ownMap) return []
    for (const { device, root, point } of readMounts(pid)) {
      if (device !== place.device || point !== WORKSPACE || !root.startsWith(`${place.root}/`)) continue
      const [serverId = '', ...rest] = root.slice(place.root.length + 1).split('/')
      if (rest.join('/') === 'workspace') return [{ pid, serverId }]
    }
    return []
  })
}

/** Returns the file system that a path lies on, and the path within it. */
function locate(path: string, mounts: readonly Mount[]): { device: string; root: string } | null {
  const above = mounts.filter(({ point }) => `${path}/`.startsWith(point === '/' ? '/' : `${point}/`))
  // Of mounts on the same point, the last hides the others.
  const mount = above.reduce<Mount | null>(
    (best, one) => (best === null || one.point.length >= best.point.length ? one : best),
    null,
  )
  if (mount === null) return null
  const below = mount.point === '/' ? path : path.slice(mount.point.length)
  return { device: mount.device, root: mount.root === '/' ? below : mount.root + below }
}
