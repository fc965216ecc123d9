import { readFileSync } from 'node:fs'
import type { Sandbox } from '../../src/compute/driver.ts'
import { LocalSandbox } from '../../src/compute/local/sandbox.ts'
import { findDescendants } from '../../src/compute/processes.ts'
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
