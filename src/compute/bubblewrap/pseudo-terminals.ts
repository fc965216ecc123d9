import { closeSync, fstatSync, openSync, statSync } from 'node:fs'
import type { SocketCalls } from '../local/network/socket-calls.ts'

/** How many pseudo-terminals a server can have open. The machine has 3,072 for all by default, see pty(7). */
const MAX_TERMINALS = 64

/** Milliseconds after which the program that sets the limit is given up. */
const PATIENCE_MS = 10_000

/** Those of bwrap's own mount, which a new limit may not change: see devpts in mount(8). */
const OPTIONS = `remount,nosuid,noexec,mode=620,ptmxmode=666,max=${MAX_TERMINALS}`

/**
 * Limits the pseudo-terminals of a sandbox, which otherwise could take all of the machine. bwrap has no option for it, so
 * `nsenter` and `mount` of util-linux do it, as the owner of the sandbox's mounts, in 4 ms. Without them there is no limit.
 * Resolves when that is over.
 *
 * @param pid a process that has the sandbox's mounts
 * @param path the PATH that the programs are looked for in
 */
export async function limitTerminals(
  { ownerOf }: Pick<SocketCalls, 'ownerOf'>,
  pid: number,
  path: string,
): Promise<void> {
  const [nsenter, mount] = ['nsenter', 'mount'].map((name) => Bun.which(name, { PATH: path }))
  if (!nsenter || !mount) return
  let mounts: number | null = null
  let owner: number | null = null
  try {
    mounts = openSync(`/proc/${pid}/ns/mnt`, 'r')
    if (fstatSync(mounts).ino === statSync('/proc/self/ns/mnt').ino) return
    owner = ownerOf(mounts)
    if (owner === null) return
    const join = ['--user=/proc/self/fd/4', '--preserve-credentials', '--mount=/proc/self/fd/3']
    const child = Bun.spawn([nsenter, ...join, mount, '-nci', '-o', OPTIONS, 'devpts', '/dev/pts'], {
      stdio: ['ignore', 'ignore', 'ignore', mounts, owner],
      env: { PATH: path },
      timeout: PATIENCE_MS,
      killSignal: 'SIGKILL',
    })
    await child.exited
  } catch {
    // The sandbox has ended.
  } finally {
    for (const descriptor of [mounts, owner]) if (descriptor !== null) closeSync(descriptor)
  }
}
