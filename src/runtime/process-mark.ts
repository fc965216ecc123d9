import { readFileSync, readlinkSync } from 'node:fs'

/** Which process this is, told so that no other process of the machine is ever taken for it. */
export interface ProcessMark {
  readonly pid: number
  /** When it started, clock ticks since the machine did: a pid comes again, this does not. */
  readonly start: string
  /** Its PID namespace, by the number that the kernel gives it: in another one the pid means another process. */
  readonly namespace: string
}

/** This process's mark; null where there is no /proc to learn it from. */
export const ownMark = (): ProcessMark | null => markOf(process.pid)

/** The mark of a process; null where it has ended. */
export function markOf(pid: number): ProcessMark | null {
  const start = startOf(pid)
  const namespace = ownNamespace()
  return start === null || namespace === null ? null : { pid, start, namespace }
}

/** Whether a process lives; null where it is of another PID namespace, which cannot be seen from here. */
export function isAlive(mark: ProcessMark): boolean | null {
  if (mark.namespace !== ownNamespace()) return null
  return startOf(mark.pid) === mark.start
}

/** The mark as letters, digits and dots, for a file's name. */
export const markText = ({ pid, start, namespace }: ProcessMark): string => `${pid}.${start}.${namespace}`

/** Reads what `markText` wrote; null for anything else. */
export function parseMark(text: string): ProcessMark | null {
  const [, pid, start = '', namespace = ''] = /^(\d+)\.(\d+)\.(\d+)$/.exec(text) ?? []
  return pid === undefined ? null : { pid: Number(pid), start, namespace }
}

/** Field 22 of proc_pid_stat(5); null where no such process runs. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name stands in parentheses and may hold anything, parentheses too.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null)
  } catch {
    return null
  }
}

function ownNamespace(): string | null {
  try {
    return /^pid:\[(\d+)\]$/.exec(readlinkSync('/proc/self/ns/pid'))?.[1] ?? null
  } catch {
    return null
  }
}
