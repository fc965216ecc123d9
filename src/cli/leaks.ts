import { existsSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EngineDirectory, EngineRemain } from '../compute/compute.ts'
import {
  killAll,
  listProcesses,
  type ProcessInfo,
  readArguments,
  readEnvironment,
  readMarker,
  readName,
  readProcess,
  SANDBOXD_COMMAND,
} from '../compute/processes.ts'
import {
  ABANDONED_MS,
  allDataDirectoryGroups,
  type DataDirectoryGroup,
  dataMarkerOf,
  findOccupants,
  isServerUser,
  portsOf,
  removeGroups,
  STAGING,
  serverMarkerOf,
} from '../compute/remains.ts'
import { isTemporary } from '../compute/trees.ts'
import { machineNow } from '../runtime/clock.ts'
import { namesIn } from '../runtime/if-present.ts'
import { shellQuote } from '../runtime/shell-quote.ts'
import {
  findAbandoned,
  findAbandonedHeartbeats,
  isInUse,
  removeTemporary,
} from '../storage/data-directory.ts'
import { processes } from '../system/processes.ts'
import type { Print } from './command.ts'
import { EngineLeaks } from './engine-leaks.ts'
import { findDataDirectory } from './find-instance.ts'
import { directoriesHeldBy, realPath } from './instances/directory-lock.ts'
import { registeredDirectories, staleEntries, unregisterFile } from './instances/registry.ts'
import { findKept, type KeptDirectory, removeKept } from './kept-directories.ts'
import { count, paint, printable } from './output.ts'
import type { OutputStream, ProcessContext } from './process-context.ts'
import { showWhile } from './status-line.ts'

/** Something that an instance has left behind after its end. */
export interface Leak {
  kind: 'process' | 'directory' | 'group' | 'entry' | 'file' | EngineRemain['kind']
  /** A pid, a path, or a name on an engine. */
  id: string
  /** Description, in words. */
  detail: string
  /** The remedy for a person. */
  remedy: string
  /** Ports on which it listens. */
  ports?: number[]
}

/** Where to look for leaks. */
interface LeakScope extends Pick<ProcessContext, 'env' | 'cwd'> {
  /** A data directory, in place of the nearest one. */
  data: string | undefined
}

/** Options of `doctor --leaks`. */
interface LeakOptions {
  data?: string | undefined
  /** What servers ran on, and the address of a Docker engine, as for serve. */
  compute?: string | undefined
  engine?: string | undefined
  fix: boolean
  /** The id of the kept directory to remove. */
  fixKept?: string | undefined
  /** Asks nobody before it is removed. */
  yes: boolean
}

/** The known data directories of this machine. */
interface KnownDirectories {
  /**
   * Data directories by marker (twelve hexadecimal digits of the path's hash), including those of ended instances.
   */
  directories: ReadonlyMap<string, string>
  /** Markers of the directories on which an instance runs. */
  live: ReadonlySet<string>
}

/** A process of a server whose instance has ended. */
interface LeakedProcess {
  pid: number
  /** Data directory of its instance, if known. */
  dataDir: string | null
}

const NOUNS: Record<Leak['kind'], string> = {
  process: 'process',
  directory: 'directory',
  group: 'control group',
  entry: 'entry',
  file: 'file',
  container: 'container',
  pod: 'pod',
  volume: 'volume',
  claim: 'claim',
}

/**
 * Prints the leaks of ended instances, and removes them with `fix`. Also prints the directories of servers that starts keep,
 * which are no leaks, and removes the one that `fixKept` names. Resolves to the exit code.
 */
export async function reportLeaks(
  context: ProcessContext,
  print: Print,
  { data, fix, fixKept, yes, compute, engine }: LeakOptions,
): Promise<number> {
  const { env, cwd } = context
  const scope = { data, env, cwd }
  const lookForKept = (): KeptDirectory[] => findKept(knownDirectories(scope).directories)
  if (fixKept !== undefined) {
    const removed = await removeKept(lookForKept(), fixKept, context, { yes })
    const kept = lookForKept()
    await print(
      {
        ok: true,
        leaks: [],
        removed: [{ kind: removed.kind, id: removed.path, detail: removed.detail }],
        kept,
      },
      (_, { out }) => `${paint(out, 'green', '✓ removed')} directory ${printable(removed.path)}\n`,
    )
    return 0
  }
  const { stderr } = context
  await using onEngine = await showWhile(stderr, 'look for what is left on engines', () =>
    EngineLeaks.find(engineDirectories(scope), context, { data, compute, engine }),
  )
  const leaks = [...findLeaks(scope), ...onEngine.leaks]
  const kept = [...lookForKept(), ...onEngine.kept]
  if (fix)
    await showWhile(stderr, 'remove what is left on engines', () =>
      onEngine.remove(() => engineDirectories(scope).filter(({ isLive }) => !isLive)),
    )
  const left =
    fix && leaks.length > 0 ? [...(await removeLeaks(scope, onEngine.directories)), ...onEngine.leaks] : leaks
  const removed = leaks.filter((leak) => !left.some(({ id }) => id === leak.id))
  await print({ ok: left.length === 0, leaks: left, removed, kept }, (_, { out }) => {
    return [
      leaks.length + left.length === 0 ? 'Nothing is left behind.\n' : '',
      ...removed.map((leak) => leakText(out, 'removed', leak)),
      ...left.map((leak) => leakText(out, 'left', leak)),
      left.length > 0 ? summaryText(left.length, fix) : '',
      ...kept.map((files) => keptText(out, files)),
    ].join('')
  })
  return left.length === 0 ? 0 : 1
}

function leakText(out: OutputStream, state: 'removed' | 'left', { kind, id, detail, remedy }: Leak): string {
  const sign = state === 'removed' ? paint(out, 'green', '✓ removed') : paint(out, 'red', '✗')
  const remark = state === 'removed' ? '' : `  ${paint(out, 'dim', printable(remedy))}\n`
  return `${sign} ${NOUNS[kind]} ${printable(id)}: ${printable(detail)}\n${remark}`
}

const keptText = (out: OutputStream, files: KeptDirectory | EngineLeaks['kept'][number]): string =>
  `${paint(out, 'yellow', '–')} ${files.kind} ${printable('path' in files ? files.path : files.id)}: kept, not a leak: ${printable(files.detail)}\n  ${paint(out, 'dim', printable(files.remedy))}\n`

const summaryText = (number: number, tried: boolean): string =>
  tried
    ? `\n${count(number, 'thing')} could not be removed: follow the remedies above.\n`
    : `\n${count(number, 'thing')} left behind. "berth doctor --leaks --fix" removes all.\n`

/**
 * Finds everything that ended instances of this user have left behind. Ignores everything that belongs to a running
 * one.
 */
export function findLeaks(scope: LeakScope): Leak[] {
  const { directories, temporary } = knownDirectories(scope)
  const own = ownProcesses()
  const known = classifyDirectories(directories, heldDirectories(own))
  const processes = leakedProcesses(own, known)
  const leakedPids = new Set(processes.map(({ pid }) => pid))
  return [
    ...processes.map(processLeak),
    ...leakedGroups(known, leakedPids).map(groupLeak),
    ...temporary.map(temporaryLeak),
    ...directories
      .filter((directory) => !temporary.includes(directory) && !known.live.has(markerOf(directory)))
      .flatMap(unfinishedDirectories),
    ...staleEntries(scope.env).map(
      ({ file, instance }): Leak => ({
        kind: 'entry',
        id: file,
        detail: `an entry of "berth list" for ${instance.data_dir}, which no instance runs on`,
        remedy: `rm ${file}; "berth list" does it too`,
      }),
    ),
    ...findAbandonedHeartbeats().map(
      ({ path, dataDir }): Leak => ({
        kind: 'file',
        id: path,
        detail: `the last heartbeat of an instance that was killed on ${dataDir}, which is gone`,
        remedy: `rm ${path}; the next start of an instance does it too`,
      }),
    ),
  ]
}

/**
 * Removes the leaks that `findLeaks` finds.
 *
 * @param needed directories that stay, because they name what is left on an engine
 * @returns the leaks that could not be removed
 */
async function removeLeaks(scope: LeakScope, needed: ReadonlySet<string>): Promise<Leak[]> {
  // Looks again before each kill, to spare instances that have started meanwhile.
  await killAll(() => {
    const own = ownProcesses()
    const known = classifyDirectories(knownDirectories(scope).directories, heldDirectories(own))
    return leakedProcesses(own, known).map(({ pid }) => pid)
  })
  for (const { kind, id } of findLeaks(scope)) {
    if (kind === 'group') removeGroups(groupsBelow(id))
    else if (kind === 'directory' && !needed.has(id)) removeTemporary(id)
    else if (kind === 'entry') unregisterFile(id)
    else if (kind === 'file') rmSync(id, { force: true })
  }
  return findLeaks(scope)
}

/**
 * Returns the known data directories, with or without a running instance, and the abandoned temporary ones among
 * them.
 */
function knownDirectories({ data, env, cwd }: LeakScope): { directories: string[]; temporary: string[] } {
  const temporary = findAbandoned(tmpdir(), machineNow())
  return {
    directories: [
      ...new Set([findDataDirectory(data, env, cwd), ...registeredDirectories(env), ...temporary]),
    ],
    temporary,
  }
}

/** Returns the known data directories with what is to be known of them. */
function engineDirectories(scope: LeakScope): EngineDirectory[] {
  const { directories, temporary } = knownDirectories(scope)
  const { live } = classifyDirectories(directories, heldDirectories(ownProcesses()))
  return directories.map((path) => ({
    path,
    isLive: live.has(markerOf(path)),
    isAbandoned: temporary.includes(path),
  }))
}

function classifyDirectories(known: readonly string[], held: readonly string[]): KnownDirectories {
  return {
    directories: new Map(known.map((directory) => [markerOf(directory), directory])),
    // A berth in another container is visible only by its lock.
    live: new Set([...held, ...known.filter(isInUse)].map(markerOf)),
  }
}

const markerOf = (directory: string): string => dataMarkerOf(realPath(directory))

/** Returns the processes of this user, and for root those of the users that only servers have. */
function ownProcesses(): ProcessInfo[] {
  const user = process.getuid?.()
  return listProcesses().filter(({ pid }) => {
    const owner = processes.owner(pid)
    if (pid === process.pid || owner === null) return false
    return owner === user || (user === 0 && isServerUser(owner))
  })
}

/** Returns the data directories that processes of this user hold. */
const heldDirectories = (own: readonly ProcessInfo[]): string[] =>
  own.flatMap(({ pid }) => directoriesHeldBy(pid))

/**
 * Returns the processes of servers whose instance has ended: those that carry a server's marker, and those that have
 * a server's workspace mounted. Other programs may have a variable similar to the marker, so that of an unknown
 * directory counts only if the process's home directory fits it, or the process is an orphaned sandboxd.
 */
function leakedProcesses(
  own: readonly ProcessInfo[],
  { directories, live }: KnownDirectories,
): LeakedProcess[] {
  const marked = own.flatMap((info) => {
    const marker = readMarker(info.pid)
    if (marker === null || !/^[0-9a-f]{32}$/.test(marker)) return []
    const dataMarker = marker.slice(0, 12)
    if (live.has(dataMarker)) return []
    const dataDir = directories.get(dataMarker) ?? directoryOf(info.pid, marker)
    if (dataDir === null && !isOrphanedSandboxd(info)) return []
    return [{ ...info, dataDir }]
  })
  const occupants = [...directories].flatMap(([dataMarker, dataDir]) =>
    live.has(dataMarker) ? [] : findOccupants(dataDir).map(({ pid }) => ({ pid, dataDir })),
  )
  return [...marked, ...occupants.filter(({ pid }) => !marked.some((one) => one.pid === pid))]
}

/**
 * Returns the data directory in the home directory of a process that sees the machine's own paths; null if it does
 * not fit the marker.
 */
function directoryOf(pid: number, marker: string): string | null {
  const home = readEnvironment(pid, 'HOME') ?? ''
  const [, dataDir, serverId] = /^(\/.*)\/servers\/([\w-]{1,64})\/workspace$/.exec(home) ?? []
  if (dataDir === undefined || serverId === undefined) return null
  return marker.startsWith(serverMarkerOf(dataMarkerOf(dataDir), serverId)) ? dataDir : null
}

/**
 * Reports whether a process is a sandboxd, or one that starts it, whose parent is not berth. The inner process of bwrap
 * waits for the outer one, and waits without end if that was killed before it had set up the sandbox's users: then nobody
 * leads their session.
 */
function isOrphanedSandboxd({ pid, parent, session }: ProcessInfo): boolean {
  if (!isSandboxd(pid)) return false
  if (nameOf(pid) === 'bwrap') return session !== pid && readProcess(session) === null
  const above = isSandboxd(parent) ? readProcess(parent) : null
  return above === null ? directoriesHeldBy(parent).length === 0 : isOrphanedSandboxd(above)
}

const isSandboxd = (pid: number): boolean => readArguments(pid).includes(SANDBOXD_COMMAND)

/** Returns the leak of a process. */
function processLeak({ pid, dataDir }: LeakedProcess): Leak {
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

const nameOf = (pid: number): string => readName(pid)?.trim() || 'a process'

/** Returns the control groups of ended instances. One with processes counts only if all of these are leaks. */
function leakedGroups(
  { live, directories }: KnownDirectories,
  leakedPids: ReadonlySet<number>,
): DataDirectoryGroup[] {
  const user = process.getuid?.()
  return allDataDirectoryGroups().filter(({ path, dataMarker, pids, changedAt }) => {
    if (live.has(dataMarker) || statSync(path, { throwIfNoEntry: false })?.uid !== user) return false
    const inside = pids()
    if (inside.length > 0) return inside.every((pid) => leakedPids.has(pid))
    // An instance that is not visible from here may be starting on an unknown directory.
    return directories.has(dataMarker) || machineNow() - changedAt() >= ABANDONED_MS
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

/** Returns the leak of an abandoned temporary directory. */
const temporaryLeak = (path: string): Leak =>
  directoryLeak(path, 'the temporary directory of an instance that was killed')

/**
 * Returns the unfinished directories in the data directory of a killed instance. The next start there removes them
 * too.
 */
function unfinishedDirectories(dataDir: string): Leak[] {
  const servers = join(dataDir, 'servers')
  const staged = namesIn(servers).flatMap((server) => {
    const staging = join(servers, server, STAGING)
    const names = namesIn(staging).filter(isTemporary)
    return names.map((name) => directoryLeak(join(staging, name), `what was being prepared for ${server}`))
  })
  const snapshots = join(dataDir, 'snapshots')
  const kept = namesIn(snapshots)
  // A replaced directory is needed until its successor has its name.
  const isKept = (name: string): boolean => name.startsWith('.old-') && !kept.includes(name.slice(5))
  const unfinished = kept
    .filter((name) => name.startsWith('.') && !isKept(name))
    .map((name) => directoryLeak(join(snapshots, name), 'a snapshot that was just being made or removed'))
  const swap = join(dataDir, 'swap')
  // A restore that was decided is completed by the next start.
  const undecided = existsSync(swap) && !existsSync(join(swap, 'decided.json'))
  const restored = undecided ? [directoryLeak(swap, 'a state that was just being made ready')] : []
  return [...staged, ...unfinished, ...restored]
}

const directoryLeak = (path: string, detail: string): Leak => ({
  kind: 'directory',
  id: path,
  detail,
  remedy: `rm -rf ${shellQuote([path])}`,
})
