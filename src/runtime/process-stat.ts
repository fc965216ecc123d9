import { readTextOrNull } from './if-present.ts'

/** The fields of /proc/PID/stat that berth reads, as positions behind the name (proc_pid_stat(5)). */
export const STAT = {
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

/** Reads the fields of a process's /proc/PID/stat; null if it has ended. `STAT` has their positions. */
export function readStatFields(pid: number | 'self'): string[] | null {
  const stat = readTextOrNull(`/proc/${pid}/stat`)
  return stat === null ? null : statFields(stat)
}

/** Splits the text of /proc/PID/stat into its fields. */
export function statFields(stat: string): string[] {
  // The name is in parentheses and may contain any character, including parentheses.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/**
 * Reports whether a process has ended, and perhaps waits to be reaped. One whose first thread alone has ended looks like
 * one that waits, and goes on.
 */
export const hasEnded = (fields: readonly string[]): boolean => {
  const state = fields[STAT.state]
  return state === 'X' || (state === 'Z' && Number(fields[STAT.threads]) <= 1)
}
