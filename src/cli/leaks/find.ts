import { statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import {
  ABANDONED_MS,
  allDataDirectoryGroups,
  type DataDirectoryGroup,
  removeGroups,
} from '../../compute/limits/groups.ts'
import { dataMarkerOf } from '../../compute/local/server-directories.ts'
import { killAll } from '../../compute/terminate.ts'
import { machineNow } from '../../runtime/clock.ts'
import { isInUse } from '../../storage/data-directory.ts'
import { findAbandoned, removeTemporary } from '../../storage/ephemeral.ts'
import { findDataDirectory } from '../instance.ts'
import { realPath } from '../instances/holder.ts'
import { registeredDirectories, removeEntry, staleEntries } from '../instances/registry.ts'
import type { Terminal } from '../terminal.ts'
import { halfMade, temporaryLeak } from './directories.ts'
import type { Leak } from './leak.ts'
import { heldDirectories, type Knowledge, leakedProcesses, ownProcesses, processLeak } from './processes.ts'

/** Where leaks are looked for. */
export interface LeakScope extends Pick<Terminal, 'env' | 'cwd'> {
  /** A data directory to look at, in place of the nearest. */
  data: string | undefined
}

/** All that instances of this user which do not run any more have left. What belongs to one that runs is none. */
export function findLeaks(scope: LeakScope): Leak[] {
  const { directories, temporary } = knownDirectories(scope)
  const own = ownProcesses()
  const knowledge = learn(directories, heldDirectories(own))
  const processes = leakedProcesses(own, knowledge)
  const doomed = new Set(processes.map(({ pid }) => pid))
  return [
    ...processes.map(processLeak),
    ...leakedGroups(knowledge, doomed).map(groupLeak),
    ...temporary.map(temporaryLeak),
    ...directories
      .filter((directory) => !temporary.includes(directory) && !knowledge.live.has(markerOf(directory)))
      .flatMap(halfMade),
    ...staleEntries(scope.env).map(
      ({ file, instance }): Leak => ({
        kind: 'entry',
        id: file,
        detail: `an entry of "berth list" for ${instance.data_dir}, which no instance runs on`,
        remedy: `rm ${file}; "berth list" does it too`,
      }),
    ),
  ]
}

/** Removes what `findLeaks` finds. @returns what could not be removed */
export async function removeLeaks(scope: LeakScope): Promise<Leak[]> {
  // Each look is a new one: whatever has come to life meanwhile is left alone.
  await killAll(() => {
    const own = ownProcesses()
    const knowledge = learn(knownDirectories(scope).directories, heldDirectories(own))
    return leakedProcesses(own, knowledge).map(({ pid }) => pid)
  })
  for (const { kind, id } of findLeaks(scope)) {
    if (kind === 'group') removeGroups(groupsBelow(id))
    else if (kind === 'folder') removeTemporary(id)
    else if (kind === 'entry') removeEntry(id)
  }
  return findLeaks(scope)
}

/** The data directories that are known of, whether or not an instance runs there, and those temporary ones that are left behind. */
function knownDirectories({ data, env, cwd }: LeakScope): { directories: string[]; temporary: string[] } {
  const temporary = findAbandoned(tmpdir(), machineNow())
  return {
    directories: [
      ...new Set([findDataDirectory(data, env, cwd), ...registeredDirectories(env), ...temporary]),
    ],
    temporary,
  }
}

function learn(known: readonly string[], held: readonly string[]): Knowledge {
  return {
    directories: new Map(known.map((directory) => [markerOf(directory), directory])),
    // A berth in another container is known by its lock alone.
    live: new Set([...held, ...known.filter(isInUse)].map(markerOf)),
  }
}

const markerOf = (directory: string): string => dataMarkerOf(realPath(directory))

/** The control groups of dead instances. One with processes counts where all of these are left behind too. */
function leakedGroups({ live, directories }: Knowledge, doomed: ReadonlySet<number>): DataDirectoryGroup[] {
  const user = process.getuid?.()
  return allDataDirectoryGroups().filter(({ path, dataMarker, pids, changedAt }) => {
    if (live.has(dataMarker) || statSync(path, { throwIfNoEntry: false })?.uid !== user) return false
    if (pids.length > 0) return pids.every((pid) => doomed.has(pid))
    // Of an unknown directory an instance may just be starting that cannot be seen from here.
    return directories.has(dataMarker) || machineNow() - changedAt >= ABANDONED_MS
  })
}

const groupLeak = ({ path, groups }: DataDirectoryGroup): Leak => ({
  kind: 'group',
  id: path,
  detail: 'the control groups of an instance that is gone',
  remedy: `rmdir ${groups.join(' ')}`,
})

const groupsBelow = (path: string): string[] =>
  allDataDirectoryGroups().find((group) => group.path === path)?.groups ?? []
