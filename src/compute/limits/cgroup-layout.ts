import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { readMounts } from '../../system/linux/mounts.ts'
import type { Limits } from '../driver.ts'

/** The resources that a cgroup can limit. */
export const RESOURCES = ['cpu', 'memory', 'processes'] as const

/** One of them. */
export type Resource = (typeof RESOURCES)[number]

/** A directory of the cgroup file system in which groups can be created, and the resources they limit. */
export interface CgroupBase {
  dir: string
  version: 1 | 2
  /** Name of the mount that it is in: for version 1 the controllers', such as `memory`. */
  mount: string
  resources: readonly Resource[]
}

/** The kernel's names. */
const CONTROLLERS: Record<Resource, string> = { cpu: 'cpu', memory: 'memory', processes: 'pids' }

/** Length of the period over which processor time is dealt out, microseconds. */
const PERIOD_US = 100_000

/**
 * Returns the directories in which this process may be able to create groups, in order of preference for each
 * resource.
 */
export function findBases(): Record<Resource, CgroupBase[]> {
  const mounts = readMounts('self').filter(({ type }) => type === 'cgroup' || type === 'cgroup2')
  const groups = readOwnGroups()
  const bases: Record<Resource, CgroupBase[]> = { cpu: [], memory: [], processes: [] }
  for (const resource of RESOURCES) {
    const controller = CONTROLLERS[resource]
    for (const { point, root, type, options } of mounts) {
      const version = type === 'cgroup2' ? 2 : 1
      const own = groups.get(version === 2 ? '' : controller)
      if (own === undefined || (version === 1 && !options.includes(controller))) continue
      const inside = join(point, relative(root, own))
      const directories = version === 2 ? [inside, dirname(inside), point] : [inside, point]
      for (const dir of new Set(directories)) {
        if (!`${dir}/`.startsWith(`${point}/`) || !existsSync(dir)) continue
        if (version === 2 && !offers(dir, controller)) continue
        bases[resource].push({ dir, version, mount: basename(point), resources: [resource] })
      }
    }
  }
  return bases
}

/**
 * Returns the files to write in a group, in order, for a limit. Files that this kernel does not have may be missing.
 */
export function settings(
  version: 1 | 2,
  resource: Resource,
  limits: Limits,
): Array<{ file: string; value: string; optional?: true }> {
  const quota = String(Math.max(1000, Math.round(limits.cpus * PERIOD_US)))
  const memory = String(limits.memoryBytes)
  if (resource === 'processes') return [{ file: 'pids.max', value: String(limits.processes) }]
  if (version === 2) {
    if (resource === 'cpu') return [{ file: 'cpu.max', value: `${quota} ${PERIOD_US}` }]
    return [
      { file: 'memory.max', value: memory },
      { file: 'memory.swap.max', value: '0', optional: true },
    ]
  }
  if (resource === 'cpu') {
    return [
      { file: 'cpu.cfs_period_us', value: String(PERIOD_US) },
      { file: 'cpu.cfs_quota_us', value: quota },
    ]
  }
  return [
    { file: 'memory.limit_in_bytes', value: memory },
    // Memory and swap together: without it the limit would only push pages out to swap.
    { file: 'memory.memsw.limit_in_bytes', value: memory, optional: true },
    // Data in TCP connections has a counter of its own there; beyond it connections become slow, as by `tcp_mem`.
    {
      file: 'memory.kmem.tcp.limit_in_bytes',
      value: String(Math.floor(limits.memoryBytes / 4)),
      optional: true,
    },
  ]
}

/**
 * Returns the file that a single-threaded process writes 0 to in order to enter a group. Version 1's `tasks` takes
 * no lock for that; version 2 has no such file for ordinary groups.
 */
export function entrance(version: 1 | 2): string {
  return version === 2 ? 'cgroup.procs' : 'tasks'
}

/** Returns the file in which the kernel counts the processes it ended for lack of memory, on a line `oom_kill N`. */
export function memoryEvents(version: 1 | 2): string {
  return version === 2 ? 'memory.events' : 'memory.oom_control'
}

/** Reports whether groups in a directory of cgroup v2 have a controller, by its `cgroup.subtree_control`. */
function offers(dir: string, controller: string): boolean {
  try {
    return readFileSync(join(dir, 'cgroup.subtree_control'), 'utf8').trim().split(' ').includes(controller)
  } catch {
    // No directory of cgroup v2.
    return false
  }
}

/** Returns this process's group by controller; the empty name is version 2. See cgroups(7). */
function readOwnGroups(): Map<string, string> {
  const groups = new Map<string, string>()
  for (const line of readText('/proc/self/cgroup').split('\n')) {
    const [, controllers, ...path] = line.split(':')
    if (controllers === undefined) continue
    for (const controller of controllers.split(',')) groups.set(controller, path.join(':'))
  }
  return groups
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // No Linux, or a /proc that hides it: no groups are found.
    return ''
  }
}
