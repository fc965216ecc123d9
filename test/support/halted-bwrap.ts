import {
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { readProcess } from '../../src/compute/processes.ts'
import { codeOf } from '../../src/runtime/error-info.ts'

/** A bwrap that halts when it has started its inner process, which waits for it. */
export interface HaltedBwrap extends Disposable {
  /** The directory that it is in, for PATH. */
  readonly dir: string
  /** Returns the pids of its processes, the outer one first. */
  processes(): number[]
}

/**
 * Makes a bwrap that halts between its clone(2) and its set-up of the sandbox's users: it waits until somebody reads
 * what it reports (`--info-fd`).
 *
 * @param parent absolute path of the directory in which it makes its own
 */
export function haltedBwrap(parent: string): HaltedBwrap {
  const dir = join(parent, 'halted')
  mkdirSync(dir)
  // Servers have users of their own.
  for (const one of [parent, dir]) chmodSync(one, 0o755)
  const fifo = join(dir, 'report')
  Bun.spawnSync(['mkfifo', '-m', '666', fifo])
  const program = `#!/bin/sh\nexec 6<> ${fifo} 0<&6\nexec ${Bun.which('bwrap')} --info-fd 6 "$@"\n`
  writeFileSync(join(dir, 'bwrap'), program, { mode: 0o755 })
  const full = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK)
  fill(full)
  return {
    dir,
    processes() {
      const found = numbersIn('/proc').filter(
        (pid) => pid !== process.pid && numbersIn(`/proc/${pid}/fd`).some((fd) => leadsTo(pid, fd, fifo)),
      )
      // Numbers wrap, so a child may have a lower one than its parent.
      const inner = found.filter((pid) => found.includes(readProcess(pid)?.parent ?? 0))
      return [...found.filter((pid) => !inner.includes(pid)), ...inner]
    },
    [Symbol.dispose]: () => closeSync(full),
  }
}

function fill(pipe: number): void {
  try {
    for (;;) writeSync(pipe, new Uint8Array(4096))
  } catch (error) {
    if (codeOf(error) !== 'EAGAIN') throw error
  }
}

function numbersIn(dir: string): number[] {
  try {
    return readdirSync(dir).map(Number).filter(Number.isInteger)
  } catch {
    // It has ended, or belongs to another user.
    return []
  }
}

function leadsTo(pid: number, fd: number, path: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`) === path
  } catch {
    return false
  }
}
