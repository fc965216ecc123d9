import { readdirSync, readFileSync } from 'node:fs'

/** The environment variable by which berth finds what a command started; systemd's name for the same thing. */
export const MARKER_NAME = 'INVOCATION_ID'

/** Name of the hidden command that is an agent. */
export const AGENT_COMMAND = '__agent'

const AGENT_ARGUMENTS = /\0__agent\0([0-9a-f]{24})\0$/

/**
 * Returns the arguments of an agent outside a PID namespace. They tell whose it is: its environment may be read by
 * root alone, since it forbids being traced.
 */
export function agentArguments(serverMarker: string): string[] {
  return [AGENT_COMMAND, serverMarker]
}

/** Returns the marker of all that a server's command starts. */
export function commandMarker(serverMarker: string, commandId: number): string {
  return serverMarker + commandId.toString(16).padStart(8, '0')
}

/** A process as /proc shows it. */
export interface ProcessInfo {
  pid: number
  parent: number
  group: number
  session: number
}

/** Which processes belong together. */
export interface Family {
  /** These processes and all their descendants, */
  roots: readonly number[]
  /** whatever is in the session of such a number, */
  sessions: readonly number[]
  /** and whatever was started with a marker that begins so. An empty one finds nothing. */
  marker: string
  /** Never these. */
  except: readonly number[]
}

/** Returns all living processes; those that have ended and wait to be reaped are left out. */
export function listProcesses(): ProcessInfo[] {
  const found: ProcessInfo[] = []
  for (const name of readdirSync('/proc')) {
    const first = name.charCodeAt(0)
    if (first < 0x30 || first > 0x39) continue
    const info = readProcess(Number(name))
    if (info !== null) found.push(info)
  }
  return found
}

/** Reports whether a process stands still, by a signal or under a debugger. */
export const isStopped = (pid: number): boolean => {
  const stat = readProc(pid, 'stat')
  return stat !== null && /^[Tt] /.test(stat.slice(stat.lastIndexOf(')') + 2))
}

/** Returns one process, or null if it has ended. */
export function readProcess(pid: number): ProcessInfo | null {
  const stat = readProc(pid, 'stat')
  if (stat === null) return null
  // The name stands in parentheses and may hold anything, parentheses too.
  const [state, parent, group, session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 4)
  if (state === 'Z' || state === 'X') return null
  return { pid, parent: Number(parent), group: Number(group), session: Number(session) }
}

/**
 * Returns all agents and what starts them in their sandboxes, of whichever berth, by the command that they were
 * started with.
 */
export const findAgents = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d/.test(name))
    .map(Number)
    .filter((pid) => readProc(pid, 'cmdline')?.split('\0').includes(AGENT_COMMAND))

/** Returns the name of a process's program, cut to 15 characters; null if it has ended. */
export const readName = (pid: number): string | null => readProc(pid, 'comm')?.trimEnd() ?? null

/** Reports whether there is a process that the system does not show to this user. */
export function isHidden(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM'
  }
}

/**
 * Returns the marker that the process was started with, or, with the number 0, the one of the agent that it is; null
 * if there is none.
 */
export function readMarker(pid: number): string | null {
  const environ = readProc(pid, 'environ')
  const value = environ === null ? null : readVariable(environ, MARKER_NAME)
  if (value !== null) return value
  const [, serverMarker] = AGENT_ARGUMENTS.exec(readProc(pid, 'cmdline') ?? '') ?? []
  return serverMarker === undefined ? null : `${serverMarker}00000000`
}

function readVariable(environ: string, name: string): string | null {
  const start = `\0${environ}`.indexOf(`\0${name}=`)
  if (start === -1) return null
  const end = environ.indexOf('\0', start)
  return environ.slice(start + name.length + 1, end === -1 ? undefined : end)
}

/** Returns the variable of a process's environment at its start; null if it has none, or may not be looked into. */
export function readEnvironment(pid: number, name: string): string | null {
  const environ = readProc(pid, 'environ')
  return environ === null ? null : readVariable(environ, name)
}

/** Returns the pids of a family that live now. */
export const findFamily = (family: Family): number[] => familyAmong(listProcesses(), readMarker, family)

/** Looks at all processes for several families at once: a look takes milliseconds, and servers often end together. */
export class ProcessLook {
  #pending: Promise<(family: Family) => number[]> | null = null

  /**
   * Resolves to a function that returns the pids of a family. Calls made before a look begins share it, so that no caller
   * gets one from before its call.
   */
  begin(): Promise<(family: Family) => number[]> {
    this.#pending ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#pending = null
        const processes = listProcesses()
        const markers = new Map(processes.map(({ pid }) => [pid, readMarker(pid)]))
        resolve((family) => familyAmong(processes, (pid) => markers.get(pid) ?? null, family))
      })
    })
    return this.#pending
  }
}

function familyAmong(
  processes: readonly ProcessInfo[],
  markerOf: (pid: number) => string | null,
  { roots, sessions, marker, except }: Family,
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
 * Returns the processes of any of these servers, agents too; a server's marker is 24 hex digits. One look at each
 * process.
 */
export function findMarked(serverMarkers: ReadonlySet<string>): number[] {
  const pids = listProcesses().map(({ pid }) => pid)
  return pids.filter((pid) => pid !== process.pid && serverMarkers.has(readMarker(pid)?.slice(0, 24) ?? ''))
}

/** Returns the descendants of a process, itself left out. */
export function findDescendants(pid: number): number[] {
  const found: number[] = []
  const pending = [pid]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const children = readChildren(next)
    if (children === null) return scanDescendants(pid)
    found.push(...children)
    pending.push(...children)
  }
  return found.filter((one) => readProcess(one) !== null)
}

/** Returns the children of a process; null if the kernel does not list them (CONFIG_PROC_CHILDREN). */
export function readChildren(pid: number): number[] | null {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    return threads.flatMap((thread) => {
      const text = readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1')
      return text.split(' ').filter(Boolean).map(Number)
    })
  } catch {
    return readProcess(pid) === null ? [] : null
  }
}

function scanDescendants(pid: number): number[] {
  const members = new Set([pid])
  addDescendants(listProcesses(), members)
  members.delete(pid)
  return [...members]
}

/** Returns these processes of a list and all that descend from them. */
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

function readProc(pid: number, file: 'stat' | 'environ' | 'cmdline' | 'comm'): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    // It has ended, or it belongs to somebody else.
    return null
  }
}
