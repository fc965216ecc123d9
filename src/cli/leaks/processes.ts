import { readFileSync, statSync } from 'node:fs'
import { portsOf } from '../../compute/local/ports.ts'
import { dataMarkerOf, serverMarkerOf } from '../../compute/local/server-directories.ts'
import { listProcesses, type ProcessInfo, readEnvironment, readMarker } from '../../compute/processes.ts'
import { heldBy } from '../instances/holder.ts'
import type { Leak } from './leak.ts'

/** What is known of the instances of this machine. */
export interface Knowledge {
  /** Data directories by the twelve hex digits of their hash, those of dead instances too. */
  directories: ReadonlyMap<string, string>
  /** The digits of those that an instance runs on. */
  live: ReadonlySet<string>
}

/** A process that was started on a server of an instance which is gone. */
export interface LeakedProcess extends ProcessInfo {
  /** The data directory of its instance, where that is known. */
  dataDir: string | null
}

/** The processes of this user. */
export function ownProcesses(): ProcessInfo[] {
  const user = process.getuid?.()
  return listProcesses().filter(
    ({ pid }) => pid !== process.pid && statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === user,
  )
}

/** The data directories that processes of this user hold now. */
export const heldDirectories = (own: readonly ProcessInfo[]): string[] =>
  own.flatMap(({ pid }) => heldBy(pid))

/**
 * Returns the processes that carry the marker of a server whose instance is gone. Other programs may carry something
 * that looks like a marker: one of an unknown directory counts only if the process names the directory itself, or is an
 * orphaned sandboxd.
 */
export function leakedProcesses(
  own: readonly ProcessInfo[],
  { directories, live }: Knowledge,
): LeakedProcess[] {
  return own.flatMap((info) => {
    const marker = readMarker(info.pid)
    if (marker === null || !/^[0-9a-f]{32}$/.test(marker)) return []
    const dataMarker = marker.slice(0, 12)
    if (live.has(dataMarker)) return []
    const dataDir = directories.get(dataMarker) ?? directoryOf(info.pid, marker)
    if (dataDir === null && !isOrphanedSandboxd(info)) return []
    return [{ ...info, dataDir }]
  })
}

/** Returns the leak that a process of a dead instance is. */
export function processLeak({ pid, dataDir }: LeakedProcess): Leak {
  const ports = portsOf(pid)
  const listens = ports.length === 0 ? '' : `, listens on port ${ports.join(', ')}`
  const where = dataDir === null ? 'of an instance that is gone' : `of a server on ${dataDir}`
  return {
    kind: 'process',
    id: String(pid),
    detail: `${nameOf(pid)}, ${where}${listens}`,
    remedy: `kill -9 ${pid}`,
    ...(ports.length === 0 ? {} : { ports }),
  }
}

/** The directory by the home directory that commands have where they see the machine's own paths; null where it does not fit the marker. */
function directoryOf(pid: number, marker: string): string | null {
  const home = readEnvironment(pid, 'HOME') ?? ''
  const [, dataDir, serverId] = /^(\/.*)\/servers\/([\w-]{1,64})\/workspace$/.exec(home) ?? []
  if (dataDir === undefined || serverId === undefined) return null
  return marker.startsWith(serverMarkerOf(dataMarkerOf(dataDir), serverId)) ? dataDir : null
}

/** A sandboxd whose parent is not a berth. */
function isOrphanedSandboxd({ pid, parent }: ProcessInfo): boolean {
  const isSandboxd = readText(`/proc/${pid}/cmdline`).includes('\0__sandboxd\0')
  return isSandboxd && heldBy(parent).length === 0
}

const nameOf = (pid: number): string => readText(`/proc/${pid}/comm`).trim() || 'a process'

function readText(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // It has ended.
    return ''
  }
}
