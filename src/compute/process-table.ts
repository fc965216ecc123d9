import { processes } from '../system/processes.ts'
import { readListeningSockets, socketsOf } from '../system/sockets.ts'
import { readEnvironment, readMarker } from './processes.ts'
import type { ProcessState, ServerConsumption } from './sandbox.ts'

/** Characters of a command line, and ports of a process, that are kept. @bound program */
const MAX_COMMAND = 2_000
const MAX_PORTS = 1_000

/** What the system shows of one process. */
export interface TableEntry {
  readonly pid: number
  readonly parentPid: number
  readonly command: string
  readonly state: ProcessState
  /** Milliseconds on a processor since its start. */
  readonly cpuMs: number
  /** Milliseconds between the start of the machine and its own. */
  readonly startedMs: number
  readonly memoryBytes: number
  /** TCP ports that it listens on, ascending; not all if they are very many. */
  readonly ports: readonly number[]
  /** Number of the command that started it; null if that is not known. */
  readonly execution: number | null
}

/** The processes of a server at one time. */
export interface ProcessTable {
  /** Milliseconds since the start of the machine. */
  readonly at: number
  readonly processes: readonly TableEntry[]
}

/**
 * Reads what the system shows of processes; leaves out those that have ended meanwhile.
 *
 * @param marker first 24 hex digits of the markers of the server's processes
 * @param networkOf pid of a process in the server's network
 */
export function readProcessTable(pids: readonly number[], marker: string, networkOf: number): ProcessTable {
  const sockets = readListeningSockets(networkOf) ?? []
  const listening = new Map(sockets.map(({ inode, port }) => [inode, port]))
  const at = processes.uptimeMs()
  const found = pids.flatMap((pid) => readEntry(pid, marker, listening) ?? [])
  return { at, processes: withInheritedExecutions(found) }
}

function readEntry(pid: number, marker: string, listening: ReadonlyMap<string, number>): TableEntry | null {
  const usage = processes.usage(pid)
  const memory = processes.memory(pid)
  if (usage === null || memory === null) return null
  const ports =
    listening.size === 0 ? [] : (socketsOf(pid) ?? []).flatMap((inode) => listening.get(inode) ?? [])
  return {
    pid,
    parentPid: usage.parentPid,
    command: commandOf(pid),
    state: usage.state,
    cpuMs: usage.cpuMs,
    startedMs: usage.startedMs,
    memoryBytes: memory.residentBytes,
    ports: [...new Set(ports)].sort((a, b) => a - b).slice(0, MAX_PORTS),
    execution: executionOf(pid, marker),
  }
}

/** Returns the milliseconds that a process and its ended children have been on a processor; 0 if it has ended. */
export function readCpuMs(pid: number): number {
  const { cpuMs = 0, childCpuMs = 0 } = processes.usage(pid) ?? {}
  return cpuMs + childCpuMs
}

/**
 * Measures what processes use together. Pages that they share count once for each.
 *
 * @param started the processes that commands have started
 * @param own the sandbox's own, whose children include those that have ended: their time counts, their memory does not
 */
export function measureConsumption(started: readonly number[], own: readonly number[]): ServerConsumption {
  let cpuMs = 0
  let memoryBytes = 0
  let threads = 0
  for (const pid of [...own, ...started]) {
    const usage = processes.usage(pid)
    if (usage === null) continue
    cpuMs += usage.cpuMs + usage.childCpuMs
    if (own.includes(pid)) continue
    memoryBytes += processes.memory(pid)?.ownBytes ?? 0
    threads += usage.threads
  }
  return { at: processes.uptimeMs(), cpuMs, memoryBytes, processes: threads }
}

function commandOf(pid: number): string {
  const text = Buffer.from(processes.commandLine(pid) ?? '', 'latin1').toString('utf8')
  const words = text.replace(/\0+$/, '').split('\0')
  const line = [toolOf(pid, words[0] ?? ''), ...words.slice(1)].join(' ')
  const command = line === '' ? `[${processes.name(pid) ?? '?'}]` : line
  return command.slice(0, MAX_COMMAND).toWellFormed()
}

/** Returns the name of a tool of berth's own, which is its executable or a link to it, as people call it: `bun`, `node`. */
function toolOf(pid: number, program: string): string {
  const name =
    program === process.execPath || program === '/berth'
      ? 'bun'
      : program.endsWith('/lib/node')
        ? 'node'
        : null
  if (name === null) return program
  return readEnvironment(pid, 'BUN_BE_BUN') === '1' ? name : program
}

function executionOf(pid: number, marker: string): number | null {
  const found = readMarker(pid)
  if (marker === '' || !found?.startsWith(marker)) return null
  const execution = Number.parseInt(found.slice(marker.length), 16)
  return Number.isSafeInteger(execution) ? execution : null
}

/** Gives processes without a marker the command of the nearest ancestor that has one. */
function withInheritedExecutions(found: readonly TableEntry[]): TableEntry[] {
  const byPid = new Map(found.map((entry) => [entry.pid, entry]))
  return found.map((entry) => {
    let from: TableEntry | undefined = entry
    // Bounded: processes that are read one after the other may seem to descend from each other.
    for (let steps = 0; from !== undefined && from.execution === null && steps < found.length; steps++) {
      from = byPid.get(from.parentPid)
    }
    return { ...entry, execution: from?.execution ?? null }
  })
}
