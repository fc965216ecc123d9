import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ifPresent } from '../../runtime/if-present.ts'
import type { Resource } from './cgroup-layout.ts'
import type { GroupUsage } from './limiter.ts'

/**
 * Reads what the kernel counts of a group. The files have other names in version 1 (cgroup-v1/memory.rst,
 * cgroup-v1/cpuacct.rst) and in version 2 (cgroup-v2.rst).
 *
 * @param dirs the group's directory for each resource; null if the resource has none
 */
export function readUsage(dirs: Readonly<Record<Resource, string | null>>): GroupUsage {
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
