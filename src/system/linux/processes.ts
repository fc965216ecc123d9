import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync, statSync } from 'node:fs'
import { codeOf } from '../../runtime/error-info.ts'
import { namesIn, readTextOrNull, textOrEmpty } from '../../runtime/if-present.ts'
import type { Descriptor, Processes, ProcessInfo, ProcessUsage } from '../system.ts'

/** Clock ticks per second in /proc. The kernel shows this number to programs on every processor (USER_HZ). */
const TICKS = 100

/** The fields of /proc/PID/stat that berth reads, as positions behind the name (proc_pid_stat(5)). */
const STAT = {
  state: 0,
  parent: 1,
  group: 2,
  session: 3,
  foregroundGroup: 5,
  userTicks: 11,
  systemTicks: 12,
  childUserTicks: 13,
  childSystemTicks: 14,
  threads: 17,
  startTicks: 19,
} as const

/**
 * Bytes that are read of a file of a process. Thousands of processes may share megabytes of environment and arguments,
 * which would take seconds to read. A program that has more before its marker has as good as cleared its environment.
 * @bound program
 */
const MAX_READ = {
  stat: 4 * 1024,
  comm: 4 * 1024,
  cmdline: 16 * 1024,
  environ: 256 * 1024,
}

/** Read into by one call at a time. */
const BUFFER = Buffer.alloc(MAX_READ.environ)

/** A directory of the descriptors of this process. */
const OWN_DESCRIPTORS = '/proc/self/fd'

/** The processes that /proc shows. */
export const linuxProcesses: Processes = {
  pids: () => readdirSync('/proc').filter(isNumber).map(Number),
  list: () => readdirSync('/proc').flatMap((name) => (isNumber(name) ? (read(Number(name)) ?? []) : [])),
  read,
  note() {},
  children(pid) {
    try {
      const threads = readdirSync(`/proc/${pid}/task`)
      return threads.flatMap((thread) => {
        const text = readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1')
        return text.split(' ').filter(Boolean).map(Number)
      })
    } catch {
      return read(pid) === null ? [] : null
    }
  },
  isStopped: (pid) => /^[Tt]$/.test(readStat(pid)?.[STAT.state] ?? ''),
  name: (pid) => readFile(pid, 'comm')?.trimEnd() ?? null,
  commandLine: (pid) => readFile(pid, 'cmdline'),
  environment: (pid) => readFile(pid, 'environ'),
  usage,
  memory(pid) {
    const status = readTextOrNull(`/proc/${pid}/status`)
    if (status === null) return null
    const bytesOf = (field: string): number =>
      Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) * 1024
    return { residentBytes: bytesOf('VmRSS'), ownBytes: bytesOf('RssAnon') + bytesOf('RssShmem') }
  },
  owner: (pid) => statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid ?? null,
  runs(pid, { dev, ino }) {
    try {
      const file = statSync(`/proc/${pid}/exe`)
      return file.dev === dev && file.ino === ino
    } catch {
      // It has ended, or belongs to another user.
      return false
    }
  },
  descriptors(pid) {
    try {
      return descriptorsAt(`/proc/${pid}/fd`, readdirSync(`/proc/${pid}/fd`))
    } catch (error) {
      return codeOf(error) === 'EACCES' ? null : []
    }
  },
  uptimeMs: () => Math.round(Number.parseFloat(readTextOrNull('/proc/uptime') ?? '0') * 1_000),
  namespace() {
    try {
      return /^pid:\[(\d+)\]$/.exec(readlinkSync('/proc/self/ns/pid'))?.[1] ?? null
    } catch {
      // A kernel without such namespaces.
      return null
    }
  },
  isInForeground() {
    const stat = readTextOrNull('/proc/self/stat')
    if (stat === null) return null
    const fields = fieldsOf(stat)
    return fields[STAT.group] === fields[STAT.foregroundGroup]
  },
  ignoredSignals() {
    const [, mask = '0'] = /^SigIgn:\s+([0-9a-f]+)$/m.exec(textOrEmpty('/proc/self/status')) ?? []
    const bits = BigInt(`0x${mask}`)
    return (signal) => ((bits >> BigInt(signal - 1)) & 1n) === 1n
  },
  maxOpenFiles() {
    const [, limit] = /^Max open files\s+(\d+)/m.exec(textOrEmpty('/proc/self/limits')) ?? []
    return limit === undefined ? null : Number(limit)
  },
  // The kernel reports it as the size of a directory from Linux 6.2 on.
  openFiles: () => statSync(OWN_DESCRIPTORS).size || readdirSync(OWN_DESCRIPTORS).length,
  countThreadsOf(uid) {
    let count = 0
    for (const name of readdirSync('/proc')) {
      if (!isNumber(name) || statSync(`/proc/${name}`, { throwIfNoEntry: false })?.uid !== uid) continue
      count += namesIn(`/proc/${name}/task`).length
    }
    return count
  },
  availableMemory() {
    const [, kib] = /^MemAvailable:\s+(\d+) kB$/m.exec(textOrEmpty('/proc/meminfo')) ?? []
    return kib === undefined ? null : Number(kib) * 1024
  },
}

const isNumber = (name: string): boolean => /^\d+$/.test(name)

function read(pid: number): ProcessInfo | null {
  const fields = readStat(pid)
  if (fields === null || hasEnded(fields)) return null
  return {
    pid,
    parent: Number(fields[STAT.parent]),
    group: Number(fields[STAT.group]),
    session: Number(fields[STAT.session]),
    startTicks: fields[STAT.startTicks] ?? '',
  }
}

function usage(pid: number): ProcessUsage | null {
  const fields = readStat(pid)
  if (fields === null) return null
  const ms = (field: number): number => (Number(fields[field]) * 1_000) / TICKS
  return {
    parentPid: Number(fields[STAT.parent]),
    state: stateOf(fields[STAT.state] ?? ''),
    cpuMs: ms(STAT.userTicks) + ms(STAT.systemTicks),
    childCpuMs: ms(STAT.childUserTicks) + ms(STAT.childSystemTicks),
    startedMs: ms(STAT.startTicks),
    threads: Number(fields[STAT.threads]),
  }
}

function stateOf(letter: string): ProcessUsage['state'] {
  // A process whose first thread alone has ended shows the state of that thread.
  if (letter === 'R' || letter === 'Z') return 'running'
  if (letter === 'T' || letter === 't') return 'stopped'
  return letter === 'D' ? 'waiting' : 'sleeping'
}

function* descriptorsAt(directory: string, names: readonly string[]): Generator<Descriptor> {
  for (const name of names) {
    const path = `${directory}/${name}`
    let target: string
    try {
      target = readlinkSync(path)
    } catch {
      // Closed meanwhile.
      continue
    }
    yield {
      fd: Number(name),
      target,
      file: () => statSync(path, { bigint: true, throwIfNoEntry: false }) ?? null,
    }
  }
}

/** Reads the fields of a process's /proc/PID/stat; null if it has ended. `STAT` has their positions. */
function readStat(pid: number): string[] | null {
  const stat = readFile(pid, 'stat')
  return stat === null ? null : fieldsOf(stat)
}

/** Splits the text of /proc/PID/stat into its fields. */
function fieldsOf(stat: string): string[] {
  // The name is in parentheses and may contain any character, including parentheses.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/**
 * Reports whether a process has ended, and perhaps waits to be reaped. One whose first thread alone has ended looks like
 * one that waits, and goes on.
 */
function hasEnded(fields: readonly string[]): boolean {
  const state = fields[STAT.state]
  return state === 'X' || (state === 'Z' && Number(fields[STAT.threads]) <= 1)
}

/** Reads the beginning of a file of a process in Latin-1, so any bytes have a text; null if it cannot be read. */
function readFile(pid: number, file: keyof typeof MAX_READ): string | null {
  let descriptor: number | null = null
  try {
    descriptor = openSync(`/proc/${pid}/${file}`, 'r')
    let length = 0
    for (let read = -1; read !== 0 && length < MAX_READ[file]; length += read) {
      read = readSync(descriptor, BUFFER, length, MAX_READ[file] - length, null)
    }
    return BUFFER.toString('latin1', 0, length)
  } catch {
    // It has ended, or belongs to another user.
    return null
  } finally {
    if (descriptor !== null) closeSync(descriptor)
  }
}
