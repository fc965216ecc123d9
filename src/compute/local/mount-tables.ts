import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { ifPresent } from '../../runtime/if-present.ts'
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
  const ownMap = readText('self', 'uid_map')
  return listProcesses().flatMap(({ pid }) => {
    const map = readText(pid, 'uid_map')
    if (map === null || map === ownMap) return []
    for (const { device, root, point } of readMounts(pid)) {
      if (device !== place.device || point !== WORKSPACE || !root.startsWith(`${place.root}/`)) continue
      const [serverId = '', ...rest] = root.slice(place.root.length + 1).split('/')
      if (rest.join('/') === 'workspace') return [{ pid, serverId }]
    }
    return []
  })
}

/** A line of a mount table, see proc_pid_mountinfo(5). */
interface Mount {
  /** Major and minor number of the file system. */
  device: string
  /** The path within the file system that is mounted. */
  root: string
  /** The path at which it is mounted. */
  point: string
  /** Of the file system, such as `cgroup2`. */
  type: string
  /** The file system's own options. */
  options: readonly string[]
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

/** Returns the mounts of a process, none if it has ended or is hidden. */
export function readMounts(pid: number | 'self'): Mount[] {
  return (readText(pid, 'mountinfo') ?? '').split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ')
    const [, , device, root, point] = before.split(' ')
    const [type = '', , options = ''] = after.split(' ')
    if (device === undefined || root === undefined || point === undefined) return []
    return [{ device, root: unquote(root), point: unquote(point), type, options: options.split(',') }]
  })
}

/** Spaces, tabs, line ends and backslashes are written as octal numbers. */
const unquote = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

function readText(pid: number | 'self', file: 'mountinfo' | 'uid_map'): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    // It has ended, or is hidden.
    return null
  }
}
