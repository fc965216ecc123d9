import { readdirSync, rmdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ifPresent, readTextOrNull } from '../../runtime/if-present.ts'
import { findBases } from './cgroup-layout.ts'

/** Milliseconds after which an empty group of an unknown data directory is taken for left behind. */
export const ABANDONED_MS = 60_000

const NAME = /^berth-([0-9a-f]{12})$/

/**
 * Returns the name of the group that contains those of all servers of a data directory.
 *
 * @param dataMarker twelve hex digits that identify it
 */
export const groupName = (dataMarker: string): string => `berth-${dataMarker}`

/** A group that contains those of all servers of one data directory. */
export interface DataDirectoryGroup {
  path: string
  /** Its own and those below, the inner ones first. */
  groups: string[]
  /** The twelve hex digits that identify the data directory. */
  dataMarker: string
  /** Returns the processes in all of them. */
  pids(): number[]
  /** Returns when one of them last changed, milliseconds since 1970; infinite if one has been removed since. */
  changedAt(): number
}

/** Returns the groups of data directories of any berth below a directory of the cgroup file system. */
export function dataDirectoryGroups(dir: string): DataDirectoryGroup[] {
  return groupsIn(dir).flatMap((name) => {
    const dataMarker = NAME.exec(name)?.[1]
    if (dataMarker === undefined) return []
    const path = join(dir, name)
    const groups = [...groupsIn(path).map((inner) => join(path, inner)), path]
    return {
      path,
      groups,
      dataMarker,
      // Each is a file to read for every server of every berth, and few callers need both.
      pids: () => groups.flatMap(processesOf),
      changedAt: () => Math.max(...groups.map(changedAt)),
    }
  })
}

/** Returns the groups in all directories in which this process may be able to create some. */
export function allDataDirectoryGroups(): DataDirectoryGroup[] {
  const places = Object.values(findBases()).flatMap((bases) => bases.map(({ dir }) => dir))
  return [...new Set(places)].flatMap(dataDirectoryGroups)
}

/**
 * Removes the groups that are empty, in this order.
 *
 * @returns whether none of them is left
 */
export function removeGroups(groups: readonly string[]): boolean {
  for (const group of groups) {
    try {
      rmdirSync(group)
    } catch {
      // It is not empty, already gone, or another user's.
    }
  }
  return groups.every((group) => ifPresent(() => statSync(group)) === null)
}

/** Returns the processes in a group; none if it is gone. */
export function processesOf(dir: string): number[] {
  const text = readTextOrNull(join(dir, 'cgroup.procs')) ?? ''
  // Those of other PID namespaces have the number 0, which would name the group of the caller.
  return text
    .split('\n')
    .map(Number)
    .filter((pid) => pid > 0)
}

function groupsIn(dir: string): string[] {
  try {
    const entries = readdirSync(dir, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  } catch {
    // It is gone.
    return []
  }
}

/**
 * Returns milliseconds since 1970. Returns infinity for a group that is gone: its owner may be recreating it, so it
 * must not count as abandoned.
 */
const changedAt = (dir: string): number => ifPresent(() => statSync(dir).mtimeMs) ?? Number.POSITIVE_INFINITY
