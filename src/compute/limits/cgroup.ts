import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isGone } from '../../runtime/if-present.ts'
import type { Enforced, Limits } from '../driver.ts'
import { killAll } from '../terminate.ts'
import { type CgroupBase, entrance, memoryEvents, type Resource, settings } from './cgroup-layout.ts'
import { ABANDONED_MS, dataFolderGroups, processesOf, removeGroups } from './groups.ts'
import type { Limiter, LimitGroup } from './limiter.ts'

/** Processes and threads of berth's own in each sandbox, which do not count against the server. */
const OWN_PROCESSES = 24

/** Milliseconds that a group whose processes have just ended may take to become empty. */
const EMPTY_MS = 1000

/** How often a group is made again whose parent another berth removes meanwhile. */
const MAX_ATTEMPTS = 8

/** Writes itself into the files up to `--`, and becomes the command after it. */
const ENTER = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 1; shift; done; shift; exec "$@"'

/** Where the groups of each resource are made; one that is missing is left to `rest`. */
export type CgroupBases = Partial<Record<Resource, CgroupBase>>

/**
 * Limits by control groups: one group for each server, below one for each data folder, so that two
 * berths never touch each other's. What no cgroup holds here is left to another limiter.
 */
export class CgroupLimiter implements Limiter {
  readonly enforced: Pick<Enforced, 'cpu' | 'memory' | 'processes'>
  readonly #bases: CgroupBases
  readonly #parent: string
  readonly #rest: Limiter
  readonly #open = new Set<string>()

  /**
   * @param bases where groups can be made; tried before
   * @param parent name of the group that holds those of all servers of this data folder
   * @param rest keeps what `bases` does not
   */
  constructor(bases: CgroupBases, parent: string, rest: Limiter) {
    this.#bases = bases
    this.#parent = parent
    this.#rest = rest
    this.enforced = {
      cpu: bases.cpu ? 'cgroup' : rest.enforced.cpu,
      memory: bases.memory ? 'cgroup' : rest.enforced.memory,
      processes: bases.processes ? 'cgroup' : rest.enforced.processes,
    }
  }

  /** Throws where a group cannot be made or set. */
  open(serverId: string, limits: Limits): LimitGroup {
    this.#open.add(serverId)
    const folders = this.#folders(serverId)
    for (const folder of folders) makeGroup(folder)
    this.#set(serverId, { ...limits, processes: limits.processes + OWN_PROCESSES })
    const { agent } = this.#rest.open(serverId, limits)
    const { memory } = this.#bases
    return {
      enter: folders.length === 0 ? [] : ['/bin/sh', '-c', ENTER, 'sh', ...this.#entrances(serverId), '--'],
      pids: () => [...new Set(folders.flatMap(processesOf))],
      memoryKills: () => (memory ? countKills(this.#folder(memory, serverId), memory.version) : 0),
      close: async () => {
        for (const folder of folders) await removeGroup(folder)
        this.#open.delete(serverId)
        this.#removeParents()
      },
      agent: {
        watch: {
          ...(this.#bases.memory ? {} : pick(agent.watch, 'memoryBytes')),
          ...(this.#bases.processes ? {} : pick(agent.watch, 'processes')),
        },
        rlimits: {
          ...pick(agent.rlimits, 'fileBytes'),
          ...(this.#bases.processes ? {} : pick(agent.rlimits, 'processes')),
        },
      },
    }
  }

  async sweep(serverIds: readonly string[]): Promise<void> {
    for (const serverId of serverIds) {
      if (this.#open.has(serverId)) continue
      for (const folder of this.#folders(serverId)) {
        await killAll(() => processesOf(folder))
        await removeGroup(folder)
      }
    }
    this.#removeParents()
    for (const base of Object.values(this.#bases)) removeAbandoned(base.folder)
  }

  /** The groups above the servers' go when nothing is in them any more. */
  #removeParents(): void {
    if (this.#open.size > 0) return
    for (const folder of this.#folders('')) attempt(() => rmdirSync(folder))
  }

  #set(serverId: string, limits: Limits): void {
    for (const [resource, base] of Object.entries(this.#bases) as Array<[Resource, CgroupBase]>) {
      for (const { file, value, optional } of settings(base.version, resource, limits)) {
        const write = (): void => writeFileSync(join(this.#folder(base, serverId), file), value)
        if (optional) attempt(write)
        else write()
      }
    }
  }

  #folders(serverId: string): string[] {
    return [...new Set(Object.values(this.#bases).map((base) => this.#folder(base, serverId)))]
  }

  #entrances(serverId: string): string[] {
    const files = Object.values(this.#bases).map((base) =>
      join(this.#folder(base, serverId), entrance(base.version)),
    )
    return [...new Set(files)]
  }

  #folder(base: CgroupBase, serverId: string): string {
    return join(base.folder, this.#parent, serverId)
  }
}

/**
 * Removes groups of data folders that are gone, as far as nothing is in them: a berth that was killed could not, and one
 * on another folder never sees them. Young ones may be about to be entered.
 */
function removeAbandoned(folder: string): void {
  for (const { groups, changedAt } of dataFolderGroups(folder)) {
    if (physicalNow() - changedAt >= ABANDONED_MS) removeGroups(groups)
  }
}

/** Milliseconds since 1970 by the machine, which dates its folders by it whatever berth's own clock says. */
function physicalNow(): number {
  return performance.timeOrigin + performance.now()
}

function countKills(folder: string, version: 1 | 2): number {
  try {
    const text = readFileSync(join(folder, memoryEvents(version)), 'latin1')
    return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0)
  } catch {
    return 0
  }
}

/**
 * Makes a group, and its parent where that is missing. An empty one that is there already is made anew: it is a killed
 * berth's, and another berth that takes it for abandoned would remove it before it is entered. The parent may be removed
 * for the same reason until the group is in it.
 *
 * @throws the system's error
 */
function makeGroup(folder: string): void {
  for (let attempt = 1; ; attempt += 1) {
    try {
      if (mkdirSync(folder, { recursive: true }) !== undefined) return
      rmdirSync(folder)
    } catch (error) {
      // It has processes, so that nobody can remove it.
      if ((error as NodeJS.ErrnoException).code === 'EBUSY') return
      if (!isGone(error) || attempt === MAX_ATTEMPTS) throw error
    }
  }
}

/** Removes an empty group; what is not yet empty, or not ours to remove, is left to the next sweep. */
async function removeGroup(folder: string): Promise<void> {
  const deadline = performance.now() + EMPTY_MS
  for (let pause = 1; ; pause *= 2) {
    try {
      return rmdirSync(folder)
    } catch (error) {
      const busy = error instanceof Error && 'code' in error && error.code === 'EBUSY'
      if (!busy || performance.now() > deadline) return
      await Bun.sleep(pause)
    }
  }
}

function attempt(call: () => void): void {
  try {
    call()
  } catch {
    // What this is for can do without.
  }
}

function pick<T extends object, K extends keyof T>(from: T, key: K): Partial<Pick<T, K>> {
  return from[key] === undefined ? {} : ({ [key]: from[key] } as Partial<Pick<T, K>>)
}
