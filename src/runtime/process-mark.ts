import { readlinkSync } from 'node:fs'
import { hasEnded, readStatFields, STAT } from './process-stat.ts'

/** Identifies this process among all processes of the machine, past and future. */
export interface ProcessMark {
  readonly pid: number
  /** When it started, in clock ticks since boot: a pid may be reused, this is not. */
  readonly start: string
  /** The kernel's number of its PID namespace: in another one the pid is another process. */
  readonly namespace: string
}

/** Returns this process's mark; null if there is no /proc to learn it from. */
export const ownMark = (): ProcessMark | null => markOf(process.pid)

/** Returns the mark of a process; null if it has ended. */
export function markOf(pid: number): ProcessMark | null {
  const start = startOf(pid)
  const namespace = ownNamespace()
  return start === null || namespace === null ? null : { pid, start, namespace }
}

/** Reports whether a process lives; null if it is of another PID namespace, which cannot be seen from here. */
export function isAlive(mark: ProcessMark): boolean | null {
  if (mark.namespace !== ownNamespace()) return null
  return startOf(mark.pid) === mark.start
}

/** Returns the mark as letters, digits and dots, for a file's name. */
export const markText = ({ pid, start, namespace }: ProcessMark): string => `${pid}.${start}.${namespace}`

/** Parses the text of `markText`; returns null for any other. */
export function parseMark(text: string): ProcessMark | null {
  const [, pid, start = '', namespace = ''] = /^(\d+)\.(\d+)\.(\d+)$/.exec(text) ?? []
  return pid === undefined ? null : { pid: Number(pid), start, namespace }
}

/** Returns when a process started, in clock ticks since boot; null if no such process runs. */
function startOf(pid: number): string | null {
  const fields = readStatFields(pid)
  return fields === null || hasEnded(fields) ? null : (fields[STAT.startTicks] ?? null)
}

function ownNamespace(): string | null {
  try {
    return /^pid:\[(\d+)\]$/.exec(readlinkSync('/proc/self/ns/pid'))?.[1] ?? null
  } catch {
    // A kernel without such namespaces.
    return null
  }
}
