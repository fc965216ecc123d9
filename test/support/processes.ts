import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf } from '../../src/runtime/error-info.ts'

/** Processes of this machine that have to do with a folder: their working folder, root or command line lies in it. */
export function processesOf(folder: string): string[] {
  const mountsOf = (pid: string) => attempt(() => readFileSync(`/proc/${pid}/mountinfo`, 'utf8'))
  const namespaceOf = (pid: string) => attempt(() => readlinkSync(`/proc/${pid}/ns/mnt`))
  const here = namespaceOf('self')
  const mountsHere = mountsOf('self')
  const mounted = `${pathInFileSystem(folder, mountsHere)}/`
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      const command = attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim())
      const cwd = attempt(() => readlinkSync(`/proc/${pid}/cwd`))
      // To list a process's mounts takes longer than all else, and most processes have those of this one.
      const mounts = () => (namespaceOf(pid) === here ? mountsHere : mountsOf(pid))
      const isInside = cwd.startsWith(folder) || command.includes(folder) || mounts().includes(mounted)
      return isInside ? [`${pid} ${command}`] : []
    })
}

/** Returns the path by which other mounts of its file system name a folder: proc_pid_mountinfo(5), fields 4 and 5. */
export function pathInFileSystem(
  folder: string,
  mounts = readFileSync('/proc/self/mountinfo', 'utf8'),
): string {
  const above = mounts
    .split('\n')
    .map((line) => line.split(' ').slice(3, 5))
    .filter(([, point = '']) => folder.startsWith(point === '/' ? point : `${point}/`))
  const [root = '/', point = '/'] = above.reduce<string[]>(
    (one, other) => ((other[1] ?? '').length >= (one[1] ?? '').length ? other : one),
    [],
  )
  return join(root, folder.slice(point.length))
}

/** Kills all processes of a server from outside, as its sandbox ends when the machine runs out of memory. */
export function killServer(dataDir: string, serverId: string): void {
  const processes = processesOf(join(dataDir, 'servers', serverId))
  if (processes.length === 0) throw new Error(`${serverId} has no process`)
  for (const line of processes) {
    try {
      process.kill(Number.parseInt(line, 10), 'SIGKILL')
    } catch (error) {
      // The end of process 1 has ended it already.
      if (codeOf(error) !== 'ESRCH') throw error
    }
  }
}

/**
 * Returns how long to wait before a condition is looked at again, in milliseconds: a tenth of what was waited so far, from 10
 * to 50, and at least four times as long as the look took, up to 200. A look may read all processes, or ask a berth.
 */
function restMs(waitedMs: number, lookMs: number): number {
  const usual = Math.min(50, Math.max(10, waitedMs / 10))
  return Math.max(usual, Math.min(200, lookMs * 4))
}

/** Waits until a condition holds, asking again and again. @throws where it does not within `ms`, as long as a busy machine may take */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  ms = 30_000,
): Promise<void> {
  const started = performance.now()
  for (;;) {
    const looked = performance.now()
    if (await condition()) return
    const now = performance.now()
    if (now - started > ms) throw new Error(`did not happen within ${ms} ms: ${what}`)
    await Bun.sleep(restMs(now - started, now - looked))
  }
}

/** Returns what a read of /proc gives, or no text where its process or descriptor is gone. */
export function attempt(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
