import { processes } from './processes.ts'

/** Identifies this process among all processes of the machine, past and future. */
export interface ProcessMark {
  readonly pid: number
  /** When it started, as `ProcessInfo.startTicks`: a pid may be reused, this is not. */
  readonly start: string
  /** The kernel's number of its PID namespace: in another one the pid is another process. */
  readonly namespace: string
}

/** Returns this process's mark; null if the system does not show it. */
export const ownMark = (): ProcessMark | null => markOf(process.pid)

/** Returns the mark of a process; null if it has ended. */
export function markOf(pid: number): ProcessMark | null {
  const start = processes.read(pid)?.startTicks
  const namespace = processes.namespace()
  return start === undefined || namespace === null ? null : { pid, start, namespace }
}

/** Reports whether a process lives; null if it is of another PID namespace, which cannot be seen from here. */
export function isAlive(mark: ProcessMark): boolean | null {
  if (mark.namespace !== processes.namespace()) return null
  return processes.read(mark.pid)?.startTicks === mark.start
}

/** Returns the mark as letters, digits and dots, for a file's name. */
export const markText = ({ pid, start, namespace }: ProcessMark): string => `${pid}.${start}.${namespace}`

/** Parses the text of `markText`; returns null for any other. */
export function parseMark(text: string): ProcessMark | null {
  const [, pid, start = '', namespace = ''] = /^(\d+)\.(\d+)\.(\d+)$/.exec(text) ?? []
  return pid === undefined ? null : { pid: Number(pid), start, namespace }
}
