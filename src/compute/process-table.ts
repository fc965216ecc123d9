import { readFileSync } from 'node:fs'
import { ifPresent, readTextOrNull } from '../runtime/if-present.ts'
import { readStatFields, STAT } from '../runtime/process-stat.ts'
import { readListeningSockets, socketsOf } from './local/sockets.ts'
import { readMarker } from './processes.ts'
import type { ProcessState, ServerConsumption } from './sandbox.ts'

/** Clock ticks per second in /proc. The kernel shows this number to programs on every processor (USER_HZ). */
const TICKS = 100

/** Characters of a command line, and ports of a process, that are kept. @bound program */
const MAX_COMMAND = 2_000
const MAX_PORTS = 1_000

/** The fields that count time on a processor, that of ended children included. */
const CPU_FIELDS = [STAT.userTicks, STAT.systemTicks, STAT.childUserTicks, STAT.childSystemTicks]

/** What /proc says of one process. */
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
 * Reads what /proc shows of processes; leaves out those that have ended meanwhile.
 *
 * @param marker first 24 hex digits of the markers of the server's processes
 * @param networkOf pid of a process in the server's network
 */
export function readProcessTable(pids: readonly number[], marker: string, networkOf: number): ProcessTable {
  const sockets = readListeningSockets(networkOf) ?? []
  const listening = new Map(sockets.map(({ inode, port }) => [inode, port]))
  const at = uptimeMs()
  const found = pids.flatMap((pid) => readEntry(pid, marker, listening) ?? [])
  return { at, processes: withInheritedExecutions(found) }
}

/** Returns milliseconds since the start of the machine. */
export const uptimeMs = (): number =>
  Math.round(Number.parseFloat(readTextOrNull('/proc/uptime') ?? '0') * 1_000)

function readEntry(pid: number, marker: string, listening: ReadonlyMap<string, number>): TableEntry | null {
  const fields = readStat(pid)
  const status = readTextOrNull(`/proc/${pid}/status`)
  if (fields === null || status === null) return null
  const ports =
    listening.size === 0 ? [] : (socketsOf(pid) ?? []).flatMap((inode) => listening.get(inode) ?? [])
  return {
    pid,
    parentPid: fields.parentPid,
    command: commandOf(pid, status),
    state: fields.state,
    cpuMs: fields.cpuMs,
    startedMs: fields.startedMs,
    memoryBytes: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024,
    ports: [...new Set(ports)].sort((a, b) => a - b).slice(0, MAX_PORTS),
    execution: executionOf(pid, marker),
  }
}

/** Reads the part of a process's entry that /proc/PID/stat has; null if it has ended. */
export function readStat(
  pid: number,
): Pick<TableEntry, 'parentPid' | 'state' | 'cpuMs' | 'startedMs'> | null {
  const fields = readStatFields(pid)
  if (fields === null) return null
  const ticks = (field: number): number => ticksOf(fields, field)
  return {
    parentPid: Number(fields[STAT.parent]),
    state: stateOf(fields[STAT.state] ?? ''),
    cpuMs: ticks(STAT.userTicks) + ticks(STAT.systemTicks),
    startedMs: ticks(STAT.startTicks),
  }
}

/** Returns the milliseconds that a process and its ended children have been on a processor; 0 if it has ended. */
export function readCpuMs(pid: number): number {
  const fields = readStatFields(pid)
  return fields === null ? 0 : CPU_FIELDS.reduce((sum, field) => sum + ticksOf(fields, field), 0)
}

/** Returns a field that counts clock ticks, in milliseconds. */
const ticksOf = (fields: readonly string[], field: number): number => (Number(fields[field]) * 1_000) / TICKS

/**
 * Measures what processes use together. Pages that they share count once for each.
 *
 * @param started the processes that commands have started
 * @param own the sandbox's own, whose children include those that have ended: their time counts, their memory does not
 */
export function measureConsumption(started: readonly number[], own: readonly number[]): ServerConsumption {
  let cpuMs = 0
  let memoryBytes = 0
  let processes = 0
  for (const pid of [...own, ...started]) {
    const fields = readStatFields(pid)
    if (fields === null) continue
    for (const field of CPU_FIELDS) cpuMs += ticksOf(fields, field)
    if (own.includes(pid)) continue
    const status = readTextOrNull(`/proc/${pid}/status`) ?? ''
    for (const name of ['RssAnon', 'RssShmem']) {
      memoryBytes += Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) * 1024
    }
    processes += Number(fields[STAT.threads])
  }
  return { at: uptimeMs(), cpuMs, memoryBytes, processes }
}

/** Returns the number of a process's threads; 0 if it has ended. */
export const countThreads = (pid: number): number => Number(readStatFields(pid)?.[STAT.threads] ?? 0)

function stateOf(letter: string): ProcessState {
  // A process whose first thread alone has ended shows the state of that thread.
  if (letter === 'R' || letter === 'Z') return 'running'
  if (letter === 'T' || letter === 't') return 'stopped'
  return letter === 'D' ? 'waiting' : 'sleeping'
}

function commandOf(pid: number, status: string): string {
  const bytes = ifPresent(() => readFileSync(`/proc/${pid}/cmdline`))
  const words = bytes?.toString('utf8').replace(/\0+$/, '').split('\0') ?? []
  const line = [toolOf(pid, words[0] ?? ''), ...words.slice(1)].join(' ')
  const command = line === '' ? `[${/^Name:\t(.*)$/m.exec(status)?.[1] ?? '?'}]` : line
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
  const variables = readTextOrNull(`/proc/${pid}/environ`)?.split('\0') ?? []
  return variables.includes('BUN_BE_BUN=1') ? name : program
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
