import { type FFITypeOrString, ptr } from 'bun:ffi'
import { constants, openSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { base62, systemRandom } from '../../runtime/random.ts'
import { openLibc } from '../libc.ts'
import type { CopyCalls, Libc, LimitedResource, PtyCalls } from '../system.ts'

/** Numbers of sys/fcntl.h, and of sys/socket.h. */
const F_SETFD = 2
const F_SETFL = 4
const F_DUPFD_CLOEXEC = 67
const FD_CLOEXEC = 1
const MSG_DONTWAIT = 0x80

/** PT_DENY_ATTACH of sys/ptrace.h. */
const PT_DENY_ATTACH = 31

/** RLIMIT_FSIZE, RLIMIT_CORE, RLIMIT_NPROC and RLIMIT_NOFILE of sys/resource.h. */
const RESOURCES: Readonly<Record<LimitedResource, number>> = {
  fileBytes: 1,
  core: 4,
  processes: 7,
  openFiles: 8,
}

/** TIOCSWINSZ of sys/ttycom.h: `_IOW('t', 103, struct winsize)`. */
const TIOCSWINSZ = 0x80087467

/** Room for the name of a terminal, as openpty(3) asks for. */
const NAME_BYTES = 128

/**
 * Gives a program the terminal whose name is `$0`: a leader of a session without a terminal gets the one that it opens.
 * That fails where another session has it; the program then does without job control.
 */
const WITH_TERMINAL = 'true 2>/dev/null <>"$0"; exec "$@"'

/**
 * The arguments between the named ones of fcntl(2) and ioctl(2) and the one behind: Apple's arm64 passes what a function's
 * prototype does not name on the stack, and takes eight arguments to registers first.
 */
const REGISTERS = Array.from({ length: process.arch === 'arm64' ? 6 : 0 }, () => 0)

const variadic = (returns: 'int'): { args: FFITypeOrString[]; returns: 'int' } => ({
  args: ['int', 'u64', ...REGISTERS.map((): FFITypeOrString => 'u64'), 'u64'],
  returns,
})

/** Loads the system calls of sandboxd. Throws if there is no C library. */
export function loadDarwinLibc(): Libc {
  const calls = openLibc({
    pipe: { args: ['ptr'], returns: 'int' },
    fcntl: variadic('int'),
    send: { args: ['int', 'ptr', 'u64', 'int'], returns: 'i64' },
    ptrace: { args: ['int', 'int', 'ptr', 'int'], returns: 'int' },
    setrlimit: { args: ['int', 'ptr'], returns: 'int' },
    usleep: { args: ['u32'], returns: 'int' },
  })
  const fcntl = (fd: number, command: number, value: number): number =>
    calls.fcntl(fd, command, ...REGISTERS, value)
  return {
    pipe(ours) {
      const fds = new Int32Array(2)
      if (calls.pipe(ptr(fds)) !== 0) throw new Error('No pipe could be made: too many open files.')
      const [read = -1, write = -1] = fds
      for (const fd of fds) fcntl(fd, F_SETFD, FD_CLOEXEC)
      fcntl(ours === 'read' ? read : write, F_SETFL, constants.O_NONBLOCK)
      return { read, write }
    },
    // The kernel widens a pipe by itself, to 64 KiB.
    widen: () => {},
    memoryFile() {
      const path = join(tmpdir(), `berth-${base62(systemRandom, 16)}`)
      const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600)
      unlinkSync(path)
      return fd
    },
    duplicate: (fd) => fcntl(fd, F_DUPFD_CLOEXEC, 0),
    // A peer that is gone is no signal: Bun ignores SIGPIPE.
    send: (socket, bytes) => Math.max(0, Number(calls.send(socket, ptr(bytes), bytes.length, MSG_DONTWAIT))),
    // launchd adopts orphans and reaps them, so only commands are children of this process, which Bun reaps.
    adoptOrphans: () => {},
    endedChild: () => null,
    reap: () => {},
    forbidTracing: () => void calls.ptrace(PT_DENY_ATTACH, 0, null, 0),
    // Only a process 1 is asked to, and there are no keyrings.
    ignoreSignals: () => {},
    leaveKeyring: () => {},
    limit(resource, value) {
      const pair = new BigUint64Array([BigInt(value), BigInt(value)])
      calls.setrlimit(RESOURCES[resource], ptr(pair))
    },
    rest: (microseconds) => void calls.usleep(microseconds),
    poolThreads: () => Number.POSITIVE_INFINITY,
    openOomScore: () => null,
  }
}

/** Loads the system calls for pseudo-terminals. Throws if there is no C library. */
export function loadDarwinPtyCalls(): PtyCalls {
  const calls = openLibc({
    openpty: { args: ['ptr', 'ptr', 'ptr', 'ptr', 'ptr'], returns: 'int' },
    ptsname: { args: ['int'], returns: 'cstring' },
    fcntl: variadic('int'),
    ioctl: variadic('int'),
  })
  return {
    open() {
      const [masters, slaves] = [new Int32Array(1), new Int32Array(1)]
      const name = new Uint8Array(NAME_BYTES)
      if (calls.openpty(ptr(masters), ptr(slaves), ptr(name), null, null) !== 0)
        throw new Error('No terminal can be opened: the system has no more, or forbids it.')
      const [master = -1] = masters
      const [slave = -1] = slaves
      for (const fd of [master, slave]) calls.fcntl(fd, F_SETFD, ...REGISTERS, FD_CLOEXEC)
      calls.fcntl(master, F_SETFL, ...REGISTERS, constants.O_NONBLOCK)
      return { master, slave }
    },
    resize(master, { columns, rows }) {
      calls.ioctl(master, TIOCSWINSZ, ...REGISTERS, ptr(new Uint16Array([rows, columns, 0, 0])))
    },
    control: (master) => ({ prefix: controlOf(String(calls.ptsname(master))), newSession: true }),
  }
}

/** Returns the beginning of the command line that gives a program a terminal. */
export const controlOf = (name: string): string[] => ['/bin/sh', '-c', WITH_TERMINAL, name]

/** Of sys/unistd.h, where they are the other way round than on Linux. */
const SEEK_HOLE = 3
const SEEK_DATA = 4

/** Loads the system calls that copy files. Throws if there is no C library. */
export function loadDarwinCopyCalls(): CopyCalls {
  const { lseek } = openLibc({ lseek: { args: ['int', 'i64', 'int'], returns: 'i64' } })
  return {
    data: (descriptor, offset) => Number(lseek(descriptor, offset, SEEK_DATA)),
    hole: (descriptor, offset) => Number(lseek(descriptor, offset, SEEK_HOLE)),
    // A clone is always a new file (fclonefileat(2)).
    share: () => false,
  }
}
