/** Processes of this machine: which ones a command or a server has started, and how they are ended. */
import { codeOf } from '../runtime/error-info.ts'
import { Pace } from '../runtime/pace.ts'
import { signal } from '../runtime/signal.ts'
import { processes } from '../system/processes.ts'
import type { ProcessInfo } from '../system/system.ts'

export type { ProcessInfo }
export { signal }

/** See `Processes`. */
export const {
  list: listProcesses,
  read: readProcess,
  children: readChildren,
  isStopped,
  name: readName,
} = processes

/**
 * The environment variable by which berth finds what a command started. systemd uses the same name for the same
 * purpose.
 */
export const MARKER_NAME = 'INVOCATION_ID'

/** Name of the hidden command that runs sandboxd. */
export const SANDBOXD_COMMAND = '__sandboxd'

/** The argument of sandboxd that makes it use standard input and output instead of an inherited socket. */
export const STDIO = '--stdio'

/** The argument of sandboxd that makes it wait for carriers on a socket, whose path follows. */
export const LISTEN = '--listen'

/** Name of the hidden command that joins its standard input and output to such a socket, whose path follows. */
export const CARRIER_COMMAND = '__sandboxd-connect'

const SANDBOXD_ARGUMENTS = /\0__sandboxd\0(?:--stdio\0|--listen\0[^\0]*\0)?([0-9a-f]{24})\0$/

/**
 * Returns sandboxd's arguments. They identify its server, because it forbids being traced and so only root can read its
 * environment. They also identify the processes that start it, such as bwrap's, which have no marker.
 */
export function sandboxdArguments(serverMarker: string): string[] {
  return [SANDBOXD_COMMAND, serverMarker]
}

/** Returns the marker of everything that one command of a server starts. */
export function commandMarker(serverMarker: string, commandId: number): string {
  return serverMarker + commandId.toString(16).padStart(8, '0')
}

/** Selects processes that belong together. */
interface ProcessFamily {
  /** These processes and all their descendants, */
  roots: readonly number[]
  /** processes in these sessions, */
  sessions: readonly number[]
  /** and processes whose marker begins with this text; an empty one selects none. */
  marker: string
  /** Pids to leave out. */
  except: readonly number[]
}

/**
 * Returns a function that returns those of the processes that have not ended. The numbers of the others may be those of
 * new processes, which have nothing to do with them.
 */
export function rememberProcesses(pids: readonly number[]): () => number[] {
  const remembered = pids.flatMap((pid) => readProcess(pid) ?? [])
  return () =>
    remembered
      .filter(({ pid, startTicks }) => readProcess(pid)?.startTicks === startTicks)
      .map(({ pid }) => pid)
}

/** Finds the sandboxd of every berth, and the processes that start it in its sandbox, by their command lines. */
export const findSandboxds = (): number[] =>
  processes.pids().filter((pid) => readArguments(pid).includes(SANDBOXD_COMMAND))

/** Reports whether a process exists that the system does not show to this user. */
export function isHidden(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/**
 * Returns the marker that a process was started with; for a sandboxd, its server's marker with the number 0. Returns
 * null if there is none.
 */
export function readMarker(pid: number): string | null {
  const value = readEnvironment(pid, MARKER_NAME)
  if (value !== null) return value
  const [, serverMarker] = SANDBOXD_ARGUMENTS.exec(processes.commandLine(pid) ?? '') ?? []
  return serverMarker === undefined ? null : `${serverMarker}00000000`
}

function readVariable(environ: string, name: string): string | null {
  const start = `\0${environ}`.indexOf(`\0${name}=`)
  if (start === -1) return null
  const end = environ.indexOf('\0', start)
  return environ.slice(start + name.length + 1, end === -1 ? undefined : end)
}

/** Returns a variable of a process's initial environment; null if it is not set, or not readable. */
export function readEnvironment(pid: number, name: string): string | null {
  const environ = processes.environment(pid)
  return environ === null ? null : readVariable(environ, name)
}

/** Returns the beginning of a process's command line; an empty list if it has ended or is not readable. */
export const readArguments = (pid: number): string[] =>
  processes.commandLine(pid)?.split('\0').filter(Boolean) ?? []

/** Returns the living processes of a family, which is looked for among all processes or among some. */
export const findFamily = (family: ProcessFamily, among = listProcesses()): number[] =>
  membersOf(among, readMarker, family)

/**
 * Scans all processes for several families at once: a scan takes milliseconds, and servers often end together. If it takes
 * longer, it leaves time for everything else.
 */
export class ProcessScanner {
  #pending: Promise<(family: ProcessFamily) => number[]> | null = null

  /**
   * Resolves to a function that returns the pids of a family. Calls before a scan begins share it, so no caller gets
   * an older scan than its call. Rejects with the system's error, as while no file can be opened.
   */
  scan(): Promise<(family: ProcessFamily) => number[]> {
    this.#pending ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#pending = null
      return this.#scan()
    })
    return this.#pending
  }

  async #scan(): Promise<(family: ProcessFamily) => number[]> {
    const processes = listProcesses()
    const markers = new Map<number, string | null>()
    const pace = new Pace()
    for (const { pid } of processes) {
      if (pace.due) await pace.rest()
      markers.set(pid, readMarker(pid))
    }
    return (family) => membersOf(processes, (pid) => markers.get(pid) ?? null, family)
  }
}

function membersOf(
  processes: readonly ProcessInfo[],
  markerOf: (pid: number) => string | null,
  { roots, sessions, marker, except }: ProcessFamily,
): number[] {
  const members = new Set<number>(roots)
  for (const { pid, session } of processes) {
    if (sessions.includes(session)) members.add(pid)
    else if (marker !== '' && markerOf(pid)?.startsWith(marker)) members.add(pid)
  }
  addDescendants(processes, members)
  return processes.map(({ pid }) => pid).filter((pid) => members.has(pid) && !except.includes(pid))
}

/**
 * Returns the processes of any of these servers, including sandboxd; a server's marker is 24 hex digits. With them come
 * their descendants: sandboxd adopts orphans, so a process without its marker is found as long as sandboxd is there.
 * Reads each process once.
 */
export function findMarked(serverMarkers: ReadonlySet<string>): number[] {
  const others = listProcesses().filter(({ pid }) => pid !== process.pid)
  const marked = others.filter(({ pid }) => serverMarkers.has(readMarker(pid)?.slice(0, 24) ?? ''))
  return [
    ...descendantsAmong(
      others,
      marked.map(({ pid }) => pid),
    ),
  ]
}

/** Returns the descendants of a process, without itself. */
export const findDescendants = (pid: number): number[] => listDescendants(pid).map((info) => info.pid)

/**
 * Lists the living descendants of a process, without itself. Looks twice: a look misses the children of a process that
 * ends just then, and a process that adopts orphans has them afterwards.
 */
export function listDescendants(pid: number): ProcessInfo[] {
  const found = new Set<number>()
  for (let look = 0; look < 2; look += 1) {
    const pending = [pid]
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const children = readChildren(next)
      if (children === null) return scanDescendants(pid)
      for (const child of children) found.add(child)
      pending.push(...children)
    }
  }
  return [...found].flatMap((one) => readProcess(one) ?? [])
}

function scanDescendants(pid: number): ProcessInfo[] {
  const processes = listProcesses()
  const members = descendantsAmong(processes, [pid])
  return processes.filter((info) => info.pid !== pid && members.has(info.pid))
}

/** Returns processes of a list and all their descendants. */
export function descendantsAmong(processes: readonly ProcessInfo[], roots: readonly number[]): Set<number> {
  const members = new Set(roots)
  addDescendants(processes, members)
  return members
}

function addDescendants(processes: readonly ProcessInfo[], members: Set<number>): void {
  for (let before = -1; before !== members.size; ) {
    before = members.size
    for (const { pid, parent } of processes) if (members.has(parent)) members.add(pid)
  }
}

/** Milliseconds between SIGTERM and SIGKILL. */
export const GRACE_MS = 1000

/** Milliseconds between SIGHUP and SIGTERM. */
export const HANG_UP_MS = 500

/** Milliseconds after which processes that survive SIGKILL (in an uninterruptible wait) are given up on. */
const GIVE_UP_MS = 5000

/** Most rounds of stopping processes that started meanwhile. */
const STOP_ROUNDS = 50

/**
 * Stops (SIGSTOP) processes, round by round until no new one appears: one that is not stopped yet may start others.
 *
 * @param find lists the processes to stop, including those already stopped
 * @returns the pids of the stopped ones
 */
export function stopAll(find: () => number[]): Set<number> {
  const stopped = new Set<number>()
  for (let round = 0; round < STOP_ROUNDS; round += 1) {
    const fresh = find().filter((pid) => !stopped.has(pid))
    if (fresh.length === 0) break
    for (const pid of fresh) {
      signal(pid, 'SIGSTOP')
      stopped.add(pid)
    }
  }
  return stopped
}

/**
 * Ends processes: SIGTERM, a grace period, then `killAll`. `find` lists the remaining ones.
 *
 * @param graceEnds the end of the grace by `performance.now()`; called repeatedly, so it may change meanwhile
 */
export async function terminate(find: () => number[], graceEnds: () => number = endOfGrace()): Promise<void> {
  await request(find, 'SIGTERM', graceEnds)
  await killAll(find)
}

/**
 * Asks processes by a signal to end. Resolves when none is left, or at the end of the grace.
 *
 * @param graceEnds as with `terminate`
 */
export async function request(
  find: () => number[],
  name: 'SIGTERM' | 'SIGHUP',
  graceEnds: () => number,
): Promise<void> {
  for (const pid of find()) {
    signal(pid, name)
    // A stopped process acts on it only when it runs again.
    signal(pid, 'SIGCONT')
  }
  for (let pause = 1; performance.now() < graceEnds(); pause = Math.min(pause * 2, 50)) {
    if (find().length === 0) return
    await Bun.sleep(pause)
  }
}

/** Returns a grace that ends in `ms` milliseconds, for `terminate` and `request`. */
export function endOfGrace(ms = GRACE_MS): () => number {
  const end = performance.now() + ms
  return () => end
}

/**
 * Ends processes at once. Stops them before killing them, round by round until no new one appears: a fork bomb that
 * is killed one by one grows back as fast. If `find` returns an array rather than a promise, all are stopped before
 * the first wait. Resolves to false if some are left that do not end.
 */
export async function killAll(find: () => number[] | Promise<number[]>): Promise<boolean> {
  // Counted from the first SIGKILL: on a busy machine the search alone may take seconds.
  let givesUpAt = Number.POSITIVE_INFINITY
  const stopped = new Set<number>()
  for (let round = 0; performance.now() < givesUpAt; round += 1) {
    const looked = find()
    const found = Array.isArray(looked) ? looked : await looked
    if (found.length === 0) return true
    const fresh = found.filter((pid) => !stopped.has(pid))
    if (fresh.length > 0 && round < STOP_ROUNDS) {
      for (const pid of fresh) {
        signal(pid, 'SIGSTOP')
        stopped.add(pid)
      }
      continue
    }
    for (const pid of found) signal(pid, 'SIGKILL')
    givesUpAt = Math.min(givesUpAt, performance.now() + GIVE_UP_MS)
    await Bun.sleep(1)
  }
  return false
}

/** Kills the processes that `find` returns now, and none that start later. Resolves when they are gone. */
export async function killPresent(find: () => number[]): Promise<void> {
  const doomed = new Set<number>()
  let isComplete = false
  const ended = killAll(() => find().filter((pid) => (isComplete ? doomed : doomed.add(pid)).has(pid)))
  // All have been stopped before the first wait; what starts from now on is not among them.
  isComplete = true
  await ended
}
