import { ptr } from 'bun:ffi'
import { closeSync, fstatSync, openSync, statSync } from 'node:fs'
import { openLibc } from '../../system/libc.ts'
import type { SocketCalls } from '../local/network/socket-calls.ts'

/**
 * How many pseudo-terminals a server can have open. The machine has 3,072 for all by default, see pty(7).
 * @bound program
 */
const MAX_TERMINALS = 64

/** Milliseconds after which the program that sets the limit is given up. */
const PATIENCE_MS = 10_000

/** The limit, and those of bwrap's own mount, which a new limit may not change: see devpts in mount(8). */
const SETTINGS: ReadonlyArray<[name: string, value: string]> = [
  ['mode', '620'],
  ['ptmxmode', '666'],
  ['max', String(MAX_TERMINALS)],
]

const OPTIONS = `remount,nosuid,noexec,${SETTINGS.map((setting) => setting.join('=')).join(',')}`

/** System calls that older C libraries have no function for; the same on all processors. */
const FSCONFIG = 431n
const FSPICK = 433n
const FSPICK_CLOEXEC = 1
const FSCONFIG_SET_STRING = 1
const FSCONFIG_CMD_RECONFIGURE = 7

/**
 * Limits the pseudo-terminals of sandboxes, which otherwise could take all of the machine. bwrap has no option for it. Root
 * does it by two system calls (Linux 5.2). Others need `nsenter` and `mount` of util-linux, which run as the owner of the
 * sandbox's mounts, for 4 ms. Without them there is no limit.
 */
export class TerminalLimit {
  readonly #calls: () => Pick<SocketCalls, 'ownerOf'>
  readonly #path: string
  #reconfigure: ReturnType<typeof loadReconfigure> | null = null

  /** @param path the PATH that the programs are looked for in */
  constructor(calls: () => Pick<SocketCalls, 'ownerOf'>, path: string) {
    this.#calls = calls
    this.#path = path
  }

  /**
   * Limits those of one sandbox, before its first command. Resolves when that is over.
   *
   * @param pid a process that has the sandbox's mounts
   */
  async limit(pid: number): Promise<void> {
    const opened: number[] = []
    const open = (file: string): number => {
      const descriptor = openSync(`/proc/${pid}/${file}`, 'r')
      opened.push(descriptor)
      return descriptor
    }
    try {
      const mounts = open('ns/mnt')
      const root = process.getuid?.() === 0 ? open('root') : null
      // Looked at last: if the process has ended, its number may be another's.
      if (statSync(`/proc/${pid}/ns/mnt`).ino !== fstatSync(mounts).ino) return
      if (fstatSync(mounts).ino === statSync('/proc/self/ns/mnt').ino) return
      this.#reconfigure ??= loadReconfigure()
      if (root !== null && this.#reconfigure(root, 'dev/pts')) return
      const owner = this.#calls().ownerOf(mounts)
      if (owner === null) return
      opened.push(owner)
      await this.#runMount(mounts, owner)
    } catch {
      // The sandbox has ended, or the kernel refuses a call: then there is no limit.
    } finally {
      for (const descriptor of opened) closeSync(descriptor)
    }
  }

  async #runMount(mounts: number, owner: number): Promise<void> {
    const [nsenter, mount] = ['nsenter', 'mount'].map((name) => Bun.which(name, { PATH: this.#path }))
    if (!nsenter || !mount) return
    const join = ['--user=/proc/self/fd/4', '--preserve-credentials', '--mount=/proc/self/fd/3']
    const child = Bun.spawn([nsenter, ...join, mount, '-nci', '-o', OPTIONS, 'devpts', '/dev/pts'], {
      stdio: ['ignore', 'ignore', 'ignore', mounts, owner],
      env: { PATH: this.#path },
      timeout: PATIENCE_MS,
      killSignal: 'SIGKILL',
    })
    await child.exited
  }
}

/**
 * Loads the C library. Throws if there is none.
 *
 * @returns a function that gives the mount at a path below an open directory `SETTINGS`, and returns whether the kernel
 * has taken them
 */
function loadReconfigure(): (directory: number, path: string) => boolean {
  const pick = openLibc({ syscall: { args: ['i64', 'i64', 'ptr', 'u32'], returns: 'i64' } })
  const config = openLibc({
    syscall: { args: ['i64', 'i64', 'u32', 'ptr', 'ptr', 'i64'], returns: 'i64' },
  })
  return (directory, path) => {
    const context = Number(pick.syscall(FSPICK, BigInt(directory), ptr(zeroEnded(path)), FSPICK_CLOEXEC))
    if (context < 0) return false
    const set = (command: number, name: Buffer | null = null, value: Buffer | null = null): boolean =>
      Number(
        config.syscall(FSCONFIG, BigInt(context), command, name && ptr(name), value && ptr(value), 0n),
      ) === 0
    try {
      return (
        SETTINGS.every(([name, value]) => set(FSCONFIG_SET_STRING, zeroEnded(name), zeroEnded(value))) &&
        set(FSCONFIG_CMD_RECONFIGURE)
      )
    } finally {
      closeSync(context)
    }
  }
}

const zeroEnded = (text: string): Buffer => Buffer.from(`${text}\0`)
