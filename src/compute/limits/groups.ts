import { readdirSync, readFileSync, rmdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ifPresent } from '../../runtime/if-present.ts'
import { findBases } from './cgroup-layout.ts'

/** Milliseconds after which an empty group of an unknown data folder is taken for left behind. */
export const ABANDONED_MS = 60_000

const NAME = /^berth-([0-9a-f]{12})$/

/** The name of the group that holds those of all servers of a data folder. @param dataMarker twelve hex digits that stand for it */
export const groupName = (dataMarker: string): string => `berth-${dataMarker}`

/** A group that holds those of the servers of one data folder. */
export interface DataDirectoryGroup {
  path: string
  /** Its own and those below, the inner ones first. */
  groups: string[]
  /** The twelve hex digits that stand for the data folder. */
  dataMarker: string
  /** What is in any of them. */
  pids: number[]
  /** When one of them changed last, milliseconds since 1970; infinite where one was removed meanwhile. */
  changedAt: number
}

/** The groups of data folders, whoever's, below a folder of the cgroup file system. */
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
      pids: groups.flatMap(processesOf),
      changedAt: Math.max(...groups.map(changedAt)),
    }
  })
}

/** Those in all places where this process may be able to make groups. */
export function allDataDirectoryGroups(): DataDirectoryGroup[] {
  const places = Object.values(findBases()).flatMap((bases) => bases.map(({ dir }) => dir))
  return [...new Set(places)].flatMap(dataDirectoryGroups)
}

/** Removes groups, in this order, as far as nothing is in them. @returns whether none of them is left */
export function removeGroups(groups: readonly string[]): boolean {
  for (const group of groups) {
    try {
      rmdirSync(group)
    } catch {
      // It is not empty, it is gone, or it is not ours to remove.
    }
  }
  return groups.every((group) => ifPresent(() => statSync(group)) === null)
}

/** The processes in a group; none where it is gone. */
export function processesOf(dir: string): number[] {
  try {
    return readFileSync(join(dir, 'cgroup.procs'), 'latin1').split('\n').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

function groupsIn(dir: string): string[] {
  try {
    const entries = readdirSync(dir, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  } catch {
    return []
  }
}

/**
 * Milliseconds since 1970. Infinite for a group that is gone: somebody has just removed it, and its owner may be making it
 * anew, so that it must not pass for abandoned.
 */
const changedAt = (dir: string): number => ifPresent(() => statSync(dir).mtimeMs) ?? Number.POSITIVE_INFINITY
