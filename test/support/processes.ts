import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf } from '../../src/runtime/error-info.ts'

/** Processes of this machine that have to do with a folder: their working folder, root or command line lies in it. */
export function processesOf(folder: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      const command = attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim())
      const cwd = attempt(() => readlinkSync(`/proc/${pid}/cwd`))
      const mounts = attempt(() => readFileSync(`/proc/${pid}/mountinfo`, 'utf8'))
      const inside = cwd.startsWith(folder) || command.includes(folder) || mounts.includes(`${folder}/`)
      return inside ? [`${pid} ${command}`] : []
    })
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
 * How long to wait before a condition is looked at again, in milliseconds: a tenth of what was waited so far, from 10 to 50.
 * A look may read all processes, or ask a berth.
 */
export const nextLookMs = (waitedMs: number): number => Math.min(50, Math.max(10, waitedMs / 10))

/** Waits until a condition holds, asking again and again. @throws where it does not within `ms`, as long as a busy machine may take */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  ms = 30_000,
): Promise<void> {
  const started = performance.now()
  while (!(await condition())) {
    const waited = performance.now() - started
    if (waited > ms) throw new Error(`did not happen within ${ms} ms: ${what}`)
    await Bun.sleep(nextLookMs(waited))
  }
}

function attempt(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
