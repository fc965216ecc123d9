import { readChildren } from '../processes.ts'
import type { Libc } from './libc.ts'

/**
 * Takes in the sandbox's orphans, where no PID namespace holds them: they stay findable as
 * descendants even without a marker, and are reaped when they end. `own` lists the children that
 * Bun itself waits for.
 */
export function adoptOrphans(libc: Libc, own: () => number[]): void {
  libc.adoptOrphans()
  process.on('SIGCHLD', () => {
    const waitedFor = new Set(own())
    for (const pid of readChildren(process.pid) ?? []) if (!waitedFor.has(pid)) libc.reap(pid)
  })
}
