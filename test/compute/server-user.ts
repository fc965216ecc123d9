import { readFileSync } from 'node:fs'
import { LocalSandbox } from '../../src/compute/local/sandbox.ts'
import { findDescendants } from '../../src/compute/processes.ts'
import type { Sandbox } from '../../src/compute/sandbox.ts'
import { driverOn, LIMITS, run } from './bench.ts'

/** The users that the kernel takes all processes in a sandbox for, without repeats. */
export function kernelUsers(sandbox: Sandbox): number[] {
  if (!(sandbox instanceof LocalSandbox)) throw new Error('not a sandbox of this machine')
  const uids = findDescendants(sandbox.pid).map((pid) =>
    Number(/^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]),
  )
  return [...new Set(uids)]
}

/** Starts a server on a data folder, and returns what is said of its user, what is so, and what a command wrote. */
export async function isolationOf(
  dataDir: string,
  path: string,
): Promise<{ said: string; users: number[]; wrote: string }> {
  const driver = driverOn('bubblewrap', dataDir, path)
  const handle = await driver.create('srv_a')
  const sandbox = await driver.start('srv_a', handle, LIMITS)
  try {
    const { stdout } = await run(sandbox, 'echo written > file; cat file; stat -c %U file')
    const probe = await driver.probe()
    const said = probe.available ? (await probe.enforced()).user : probe.reason
    return { said, users: kernelUsers(sandbox), wrote: stdout }
  } finally {
    await sandbox.stop()
    await driver.destroy(handle)
  }
}

/** Starts a server on a data folder, and returns how its processes are limited, to how many, and how many it could start. */
export async function processLimitOf(
  dataDir: string,
): Promise<{ enforced: string; limit: number; started: number }> {
  const driver = driverOn('bubblewrap', dataDir)
  const handle = await driver.create('srv_a')
  const sandbox = await driver.start('srv_a', handle, { ...LIMITS, processes: 60 })
  try {
    const { stdout } = await run(sandbox, 'cat /proc/self/limits')
    const limit = Number(/^Max processes +(\d+)/m.exec(stdout)?.[1])
    // Far more than the limit, in less time than a watchdog takes to look.
    await run(sandbox, 'for n in $(seq 200); do sleep 300 & done', { timeoutMs: 5000 })
    if (!(sandbox instanceof LocalSandbox)) throw new Error('not a sandbox of this machine')
    const probe = await driver.probe()
    const enforced = probe.available ? (await probe.enforced()).processes : probe.reason
    return { enforced, limit, started: findDescendants(sandbox.pid).length }
  } finally {
    await sandbox.stop()
    await driver.destroy(handle)
  }
}
