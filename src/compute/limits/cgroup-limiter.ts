import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { codeOf } from '../../runtime/error-info.ts'
import { ifPresent, isGone, readTextOrNull } from '../../runtime/if-present.ts'
import type { Enforced, Limits } from '../driver.ts'
import { killAll } from '../processes.ts'
import { type CgroupBase, entrance, memoryEvents, type Resource, settings } from './cgroup-layout.ts'
import { ABANDONED_MS, dataDirectoryGroups, processesOf, removeGroups } from './groups.ts'
import type { GroupUsage, Limiter, LimitGroup, ShownGroup } from './limiter.ts'

/** Processes and threads of berth's own in each sandbox, which do not count against the server. */
const OWN_PROCESSES = 24

/**
 * The part of a server's memory that unread data in TCP, UDP and netlink sockets may take. A group counts some of it: one
 * of version 1 up to a quarter.
 */
const SOCKETS_SHARE = 1 / 2

/** Milliseconds that a group whose processes have just ended may take to become empty. */
const EMPTY_MS = 1000

/** Milliseconds for which a group is made again that another berth removes meanwhile. */
const MAKE_MS = 1000

/** Where control groups are mounted, by convention. */
const MOUNT = '/sys/fs/cgroup'

/** A shell script that writes its own pid into the files before `--`, then executes the command after it. */
const ENTER = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 1; shift; done; shift; exec "$@"'

/** The directory for each resource's groups. A missing resource is left to the fallback limiter. */
export type CgroupBases = Partial<Record<Resource, CgroupBase>>

/**
 * Limits servers by control groups: one group per server, inside one per data directory, so two berths never touch
 * each other's groups. Resources without a cgroup are left to the fallback limiter.
 */
export class CgroupLimiter implements Limiter {
  readonly enforced: Pick<Enforced, 'cpu' | 'memory' | 'processes'>
  readonly #bases: CgroupBases
  readonly #parent: string
  readonly #fallback: Limiter
  readonly #openGroups = new Set<string>()

  /**
   * @param bases directories in which groups can be created, already tried
   * @param parent name of the group that contains those of all servers of this data directory
   * @param fallback limits the resources that `bases` lacks
   */
  constructor(bases: CgroupBases, parent: string, fallback: Limiter) {
    this.#bases = bases
    this.#parent = parent
    this.#fallback = fallback
    this.enforced = {
      cpu: bases.cpu ? 'cgroup' : fallback.enforced.cpu,
      memory: bases.memory ? 'cgroup' : fallback.enforced.memory,
      processes: bases.processes ? 'cgroup' : fallback.enforced.processes,
    }
  }

  /**
   * Returns those of version 1 by controller, or the one of version 2: where the system mounts them, and runtimes read
   * them.
   */
  shownGroups(serverId: string): ShownGroup[] {
    const bases = Object.values(this.#bases)
    const old = bases.filter(({ version }) => version === 1)
    if (old.length === 0) {
      return bases.slice(0, 1).map((base) => ({ dir: this.#dir(base, serverId), path: MOUNT }))
    }
    return old.map((base) => ({ dir: this.#dir(base, serverId), path: join(MOUNT, base.mount) }))
  }

  /** Throws if a group cannot be made or set. */
  openGroup(serverId: string, limits: Limits, hasOwnUser = false): LimitGroup {
    this.#openGroups.add(serverId)
    const directories = this.#directories(serverId)
    this.#make(serverId, { ...limits, processes: limits.processes + OWN_PROCESSES })
    const { sandboxd } = this.#fallback.openGroup(serverId, limits, hasOwnUser)
    const { memory } = this.#bases
    return {
      enter:
        directories.length === 0 ? [] : ['/bin/sh', '-c', ENTER, 'sh', ...this.#entrances(serverId), '--'],
      environment: this.#bases.cpu ? threadVariables(limits.cpus) : {},
      directories,
      usage: () => this.#usage(serverId),
      memoryKills: () => (memory ? countKills(this.#dir(memory, serverId), memory.version) : 0),
      close: async () => {
        for (const dir of directories) await removeGroup(dir)
        this.#openGroups.delete(serverId)
        this.#removeParents()
      },
      sandboxd: {
        watch: {
          ...(this.#bases.memory
            ? { socketBytes: Math.floor(limits.memoryBytes * SOCKETS_SHARE) }
            : pick(sandboxd.watch, 'memoryBytes')),
          ...(this.#bases.processes ? {} : pick(sandboxd.watch, 'processes')),
        },
        rlimits: {
          ...pick(sandboxd.rlimits, 'fileBytes'),
          ...(this.#bases.processes ? {} : pick(sandboxd.rlimits, 'processes')),
        },
      },
    }
  }

  async sweep(serverIds: readonly string[]): Promise<void> {
    for (const serverId of serverIds) {
      if (this.#openGroups.has(serverId)) continue
      for (const dir of this.#directories(serverId)) {
        await killAll(() => processesOf(dir))
        await removeGroup(dir)
      }
    }
    this.#removeParents()
    for (const base of Object.values(this.#bases)) removeAbandoned(base.dir)
  }

  /** The groups above the servers' go when nothing is in them anymore. */
  #removeParents(): void {
    if (this.#openGroups.size > 0) return
    for (const dir of this.#directories('')) attempt(() => rmdirSync(dir))
  }

  /**
   * Creates a server's groups and sets their limits. Begins again if one disappears meanwhile: until a group is in
   * it, another berth may consider the parent abandoned and remove it.
   */
  #make(serverId: string, limits: Limits): void {
    retryGone(() => {
      for (const dir of this.#directories(serverId)) retryGone(() => makeGroup(dir))
      this.#set(serverId, limits)
    })
  }

  #set(serverId: string, limits: Limits): void {
    for (const [resource, base] of Object.entries(this.#bases) as Array<[Resource, CgroupBase]>) {
      for (const { file, value, optional } of settings(base.version, resource, limits)) {
        const write = (): void => writeFileSync(join(this.#dir(base, serverId), file), value)
        if (optional) attempt(write)
        else write()
      }
    }
  }

  #usage(serverId: string): GroupUsage {
    const dirOf = (resource: Resource): string | null => {
      const base = this.#bases[resource]
      return base === undefined ? null : this.#dir(base, serverId)
    }
    return readUsage({ cpu: dirOf('cpu'), memory: dirOf('memory'), processes: dirOf('processes') })
  }

  #directories(serverId: string): string[] {
    return [...new Set(Object.values(this.#bases).map((base) => this.#dir(base, serverId)))]
  }

  #entrances(serverId: string): string[] {
    const files = Object.values(this.#bases).map((base) =>
      join(this.#dir(base, serverId), entrance(base.version)),
    )
    return [...new Set(files)]
  }

  #dir(base: CgroupBase, serverId: string): string {
    return join(base.dir, this.#parent, serverId)
  }
}

/**
 * Returns variables that set the number of threads of OpenMP programs, nproc(1) and Go, if a server has fewer
 * processors than the machine. More threads than that would only wait for each other.
 */
function threadVariables(cpus: number): Record<string, string> {
  const threads = Math.max(1, Math.ceil(cpus))
  if (threads >= availableParallelism()) return {}
  return { OMP_NUM_THREADS: String(threads), GOMAXPROCS: String(threads) }
}

/**
 * Removes empty groups of data directories that no longer exist: a killed berth could not remove them, and a berth
 * with another data directory has no other reason to look. Recent groups stay, because a process may be about to
 * enter them.
 */
function removeAbandoned(dir: string): void {
  for (const { groups, changedAt } of dataDirectoryGroups(dir)) {
    if (physicalNow() - changedAt() >= ABANDONED_MS) removeGroups(groups)
  }
}

/**
 * Returns milliseconds since 1970 by the system clock. The kernel dates directories by it, whatever berth's own clock
 * shows.
 */
function physicalNow(): number {
  return performance.timeOrigin + performance.now()
}

/** Returns how many processes of a group the kernel has ended for lack of memory; 0 if the group is gone. */
function countKills(dir: string, version: 1 | 2): number {
  const text = readTextOrNull(join(dir, memoryEvents(version))) ?? ''
  return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0)
}

/**
 * Creates a group, and its parent if that is missing. Recreates an empty group that exists: a killed berth left it,
 * and another berth that considers it abandoned could remove it before it is entered.
 *
 * @throws the system's error
 */
function makeGroup(dir: string): void {
  if (mkdirSync(dir, { recursive: true }) !== undefined) return
  try {
    rmdirSync(dir)
  } catch (error) {
    // It has processes, so nobody can remove it.
    if (codeOf(error) === 'EBUSY') return
    throw error
  }
  mkdirSync(dir, { recursive: true })
}

/**
 * Calls `make` until nothing that it needs disappears meanwhile, for a second at most. Does not pause: whoever removes
 * groups all the time must lose one race only.
 *
 * @throws what `make` throws last
 */
function retryGone(make: () => void): void {
  const deadline = performance.now() + MAKE_MS
  for (;;) {
    try {
      make()
      return
    } catch (error) {
      if (!isGone(error) || performance.now() > deadline) throw error
    }
  }
}

/**
 * Removes an empty group. Leaves a group that does not become empty, or that belongs to another user, to the next
 * sweep.
 */
async function removeGroup(dir: string): Promise<void> {
  const deadline = performance.now() + EMPTY_MS
  for (let pause = 1; ; pause *= 2) {
    try {
      return rmdirSync(dir)
    } catch (error) {
      const busy = codeOf(error) === 'EBUSY'
      if (!busy || performance.now() > deadline) return
      await Bun.sleep(pause)
    }
  }
}

function attempt(call: () => void): void {
  try {
    call()
  } catch {
    // The step is optional.
  }
}

function pick<T extends object, K extends keyof T>(from: T, key: K): Partial<Pick<T, K>> {
  return from[key] === undefined ? {} : ({ [key]: from[key] } as Partial<Pick<T, K>>)
}

/**
 * Reads what the kernel counts of a group. The files have other names in version 1 (cgroup-v1/memory.rst,
 * cgroup-v1/cpuacct.rst) and in version 2 (cgroup-v2.rst).
 *
 * @param dirs the group's directory for each resource; null if the resource has none
 */
function readUsage(dirs: Readonly<Record<Resource, string | null>>): GroupUsage {
  return {
    cpuMs: dirs.cpu === null ? null : cpuMsIn(dirs.cpu),
    memoryBytes: dirs.memory === null ? null : memoryIn(dirs.memory),
    threads: dirs.processes === null ? null : numberIn(dirs.processes, 'pids.current'),
  }
}

function cpuMsIn(dir: string): number | null {
  const microseconds = statIn(dir, 'cpu.stat', 'usage_usec')
  if (microseconds !== null) return microseconds / 1_000
  // Where cpuacct is mounted with cpu.
  const nanoseconds = numberIn(dir, 'cpuacct.usage')
  return nanoseconds === null ? null : nanoseconds / 1_000_000
}

function memoryIn(dir: string): number | null {
  const all = numberIn(dir, 'memory.current') ?? numberIn(dir, 'memory.usage_in_bytes')
  if (all === null) return null
  const cache =
    statIn(dir, 'memory.stat', 'total_inactive_file') ?? statIn(dir, 'memory.stat', 'inactive_file')
  return Math.max(0, all - (cache ?? 0))
}

function statIn(dir: string, file: string, name: string): number | null {
  const text = ifPresent(() => readFileSync(join(dir, file), 'latin1')) ?? ''
  const [, value] = new RegExp(`^${name} (\\d+)$`, 'm').exec(text) ?? []
  return value === undefined ? null : Number(value)
}

function numberIn(dir: string, file: string): number | null {
  const text = ifPresent(() => readFileSync(join(dir, file), 'latin1'))
  return text === null ? null : Number(text)
}
