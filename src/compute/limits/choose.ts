import type { Limits } from '../driver.ts'
import { type CgroupBase, findBases, RESOURCES, type Resource } from './cgroup-layout.ts'
import { type CgroupBases, CgroupLimiter } from './cgroup-limiter.ts'
import { groupName } from './groups.ts'
import type { Limiter } from './limiter.ts'
import { WatchdogLimiter } from './watchdog-limiter.ts'

/** Name of the group that a probe makes; no server's id has a dot. */
const PROBE_GROUP = 'probe.tmp'

/** Limits under which the probe's own process runs without noticing. */
const PROBE_LIMITS: Limits = { cpus: 1, memoryBytes: 2 ** 28, processes: 64, storageBytes: 2 ** 30 }

/** A shell script that succeeds if one of its own groups has the given name. */
const INSIDE = 'while read -r line; do case $line in *"$0"*) exit 0;; esac; done < /proc/self/cgroup; exit 1'

/**
 * Chooses the strongest limiter that works here. Tries every candidate with a process of its own: a writable
 * directory says little about cgroups.
 *
 * @param dataMarker twelve hex digits that identify the data directory
 * @param ownUserNamespace whether each sandbox has its own user namespace
 */
export async function chooseLimiter(dataMarker: string, ownUserNamespace: boolean): Promise<Limiter> {
  const fallback = new WatchdogLimiter(ownUserNamespace, process.getuid?.() ?? 0)
  const parent = groupName(dataMarker)
  const candidates = findBases()
  if (RESOURCES.every((resource) => candidates[resource].length === 0)) return fallback
  const first: CgroupBases = {}
  for (const resource of RESOURCES) {
    const [base] = candidates[resource]
    if (base !== undefined) first[resource] = base
  }
  // Usually all preferred directories work. If not, try each one by itself.
  const bases = (await tryBases(first, parent, fallback))
    ? first
    : await findWorkingBases(candidates, parent, fallback)
  return Object.keys(bases).length === 0 ? fallback : new CgroupLimiter(bases, parent, fallback)
}

async function findWorkingBases(
  candidates: Record<Resource, CgroupBase[]>,
  parent: string,
  fallback: Limiter,
): Promise<CgroupBases> {
  const bases: CgroupBases = {}
  for (const resource of RESOURCES) {
    for (const base of candidates[resource]) {
      if (bases[resource] === undefined && (await tryBases({ [resource]: base }, parent, fallback)))
        bases[resource] = base
    }
  }
  return bases
}

/** Makes a group, sets it, and has a process enter it. */
async function tryBases(bases: CgroupBases, parent: string, fallback: Limiter): Promise<boolean> {
  const limiter = new CgroupLimiter(bases, parent, fallback)
  try {
    const group = limiter.openGroup(PROBE_GROUP, PROBE_LIMITS)
    const argv = [...group.enter, '/bin/sh', '-c', INSIDE, parent]
    const code = await Bun.spawn(argv, { stdio: ['ignore', 'ignore', 'ignore'], env: {} }).exited
    await group.close()
    return code === 0
  } catch {
    // Read-only, not delegated, or not permitted.
    await limiter.sweep([PROBE_GROUP])
    return false
  }
}
