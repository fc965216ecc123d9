import { readFileSync } from 'node:fs'

/** A line of a mount table, see proc_pid_mountinfo(5). */
export interface Mount {
  /** Major and minor number of the file system. */
  device: string
  /** The path within the file system that is mounted. */
  root: string
  /** The path at which it is mounted. */
  point: string
  /** Of the file system, such as `cgroup2`. */
  type: string
  /** The file system's own options. */
  options: readonly string[]
}

/** Returns the lines of the uid_map of a process's user namespace; null if it has ended or is hidden. */
export const readUserMap = (pid: number | 'self'): string | null => readText(pid, 'uid_map')

/** Returns the mounts of a process, none if it has ended or is hidden. */
export function readMounts(pid: number | 'self'): Mount[] {
  return (readText(pid, 'mountinfo') ?? '').split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ')
    const [, , device, root, point] = before.split(' ')
    const [type = '', , options = ''] = after.split(' ')
    if (device === undefined || root === undefined || point === undefined) return []
    return [{ device, root: unquote(root), point: unquote(point), type, options: options.split(',') }]
  })
}

/** Spaces, tabs, line ends and backslashes are written as octal numbers. */
const unquote = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

function readText(pid: number | 'self', file: 'mountinfo' | 'uid_map'): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    // It has ended, or is hidden.
    return null
  }
}
