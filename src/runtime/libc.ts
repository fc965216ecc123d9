import { dlopen, type FFIFunction, type Library, ptr } from 'bun:ffi'

const O_CLOEXEC = 0o2000000
const O_NONBLOCK = 0o4000
const F_SETFL = 4
const F_DUPFD_CLOEXEC = 1030
const F_SETPIPE_SZ = 1031
const MSG_DONTWAIT = 0x40
const MSG_NOSIGNAL = 0x4000
const MFD_CLOEXEC = 1
const WNOHANG = 1
const WEXITED = 4
const WNOWAIT = 0x01000000
const P_ALL = 0
/** Length of siginfo_t, and the position of si_pid in it on 64-bit systems, in words of 4 bytes. */
const SIGINFO_WORDS = 32
const SIGINFO_PID = 4
const PR_SET_DUMPABLE = 4
const PR_SET_CHILD_SUBREAPER = 36
/** keyctl(2), by processor; libc has no function for it. */
const KEYCTL = process.arch === 'arm64' ? 219 : 250
const KEYCTL_JOIN_SESSION_KEYRING = 1
const IPC_RMID = 0
const LAST_SIGNAL = 64
/** SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGCHLD, SIGSTOP, SIGPWR, SIGSYS, and those of the C library's threads. */
const USED_SIGNALS = [1, 2, 9, 15, 17, 19, 30, 31, 32, 33]
const SIG_IGN = 1
/** Positions in sysinfo(2)'s structure on 64-bit systems: in words of 8 bytes, and of 4 bytes for the unit. */
const SYSINFO_WORDS = 16
const SYSINFO_SHARED = 6
const SYSINFO_SWAP = 8
const SYSINFO_FREE_SWAP = 9
const SYSINFO_UNIT = 26
const RLIMIT_FSIZE = 1
const RLIMIT_CORE = 4
const RLIMIT_NPROC = 6
const RLIMIT_NOFILE = 7

/** The system calls of sandboxd that Bun has no function for. */
export interface Libc {
  /**
   * Creates a pipe. Bun gives children socket pairs for output; opening `/dev/stdout` on these fails with ENXIO,
   * which breaks scripts that work elsewhere. The end that this process keeps, `ours`, never blocks.
   */
  pipe(ours: 'read' | 'write'): { read: number; write: number }
  /** Gives a pipe room for a number of bytes, if this user may have so many. */
  widen(pipe: number, bytes: number): void
  /** Returns an unnamed file in memory, for standard input of any size. */
  memoryFile(): number
  /** Returns another descriptor of the same file, which no child inherits. */
  duplicate(fd: number): number
  /**
   * Sends what a connected socket has room for, without waiting.
   *
   * @returns the number of bytes; 0 also if the peer is gone
   */
  send(socket: number, bytes: Uint8Array): number
  /** Makes orphans of the sandbox children of this process. */
  adoptOrphans(): void
  /** Returns a child that has ended and was not reaped yet, without reaping it; null if there is none (waitid(2)). */
  endedChild(): number | null
  /** Reaps a child that has ended and that Bun did not start. */
  reap(pid: number): void
  /** Keeps processes of the same user from tracing this one or taking its descriptors. */
  forbidTracing(): void
  /**
   * Ignores signals that would end this process and that it has no use for. What Bun starts has the default actions again. A
   * process 1 is spared the default actions, but not while its first thread blocks signals, as it does when it starts a
   * program; and Bun's handlers for crashes end it.
   */
  ignoreSignals(): void
  /** Gives this process a new session keyring; a shared one would contain other programs' keys. */
  leaveKeyring(): void
  /** Sets a resource limit on this process and all it starts. */
  limit(resource: keyof typeof RESOURCES, value: number): void
  /**
   * Returns the machine's memory, in bytes, that belongs to files in memory and shared segments, or may have been
   * swapped out: no program has more of it.
   */
  sharedMemory(): number
  /** Leaves the processor to other threads for a moment. @param microseconds less than a million */
  rest(microseconds: number): void
  /**
   * Removes a System V object. The memory of a shared segment is free when nobody has it attached (shmctl(2), semctl(2),
   * msgctl(2)).
   */
  removeObject(kind: 'segment' | 'semaphores' | 'queue', id: number): void
}

const RESOURCES = {
  fileBytes: RLIMIT_FSIZE,
  core: RLIMIT_CORE,
  processes: RLIMIT_NPROC,
  openFiles: RLIMIT_NOFILE,
}

/** The C library's names: glibc, then musl. */
const LIBRARIES = ['libc.so.6', `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`] as const

/** Loads the C library; about 0.3 ms. Throws if there is none. */
export function loadLibc(): Libc {
  const symbols = openLibc({
    pipe2: { args: ['ptr', 'int'], returns: 'int' },
    fcntl: { args: ['int', 'int', 'int'], returns: 'int' },
    send: { args: ['int', 'ptr', 'u64', 'int'], returns: 'i64' },
    memfd_create: { args: ['ptr', 'u32'], returns: 'int' },
    prctl: { args: ['int', 'u64', 'u64', 'u64', 'u64'], returns: 'int' },
    syscall: { args: ['i64', 'i64', 'i64'], returns: 'i64' },
    waitid: { args: ['int', 'u32', 'ptr', 'int'], returns: 'int' },
    waitpid: { args: ['int', 'ptr', 'int'], returns: 'int' },
    setrlimit: { args: ['int', 'ptr'], returns: 'int' },
    sysinfo: { args: ['ptr'], returns: 'int' },
    shmctl: { args: ['int', 'int', 'ptr'], returns: 'int' },
    semctl: { args: ['int', 'int', 'int'], returns: 'int' },
    msgctl: { args: ['int', 'int', 'ptr'], returns: 'int' },
    usleep: { args: ['u32'], returns: 'int' },
    signal: { args: ['int', 'u64'], returns: 'u64' },
  })
  return {
    pipe(ours) {
      const fds = new Int32Array(2)
      if (symbols.pipe2(ptr(fds), O_CLOEXEC) !== 0)
        throw new Error('No pipe could be made: too many open files.')
      const [read = -1, write = -1] = fds
      symbols.fcntl(ours === 'read' ? read : write, F_SETFL, O_NONBLOCK)
      return { read, write }
    },
    widen: (pipe, bytes) => void symbols.fcntl(pipe, F_SETPIPE_SZ, bytes),
    memoryFile() {
      const fd = symbols.memfd_create(ptr(Buffer.from('stdin\0')), MFD_CLOEXEC)
      if (fd < 0) throw new Error('No memory file could be made for standard input.')
      return fd
    },
    duplicate: (fd) => symbols.fcntl(fd, F_DUPFD_CLOEXEC, 0),
    send: (socket, bytes) =>
      Math.max(0, Number(symbols.send(socket, ptr(bytes), bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL))),
    adoptOrphans: () => void symbols.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0),
    endedChild() {
      const info = new Int32Array(SIGINFO_WORDS)
      if (symbols.waitid(P_ALL, 0, ptr(info), WEXITED | WNOHANG | WNOWAIT) !== 0) return null
      return info[SIGINFO_PID] || null
    },
    reap: (pid) => void symbols.waitpid(pid, null, WNOHANG),
    ignoreSignals() {
      for (let signal = 1; signal <= LAST_SIGNAL; signal += 1) {
        if (!USED_SIGNALS.includes(signal)) symbols.signal(signal, SIG_IGN)
      }
    },
    leaveKeyring: () => void symbols.syscall(KEYCTL, KEYCTL_JOIN_SESSION_KEYRING, 0),
    forbidTracing: () => void symbols.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0),
    limit(resource, value) {
      const pair = new BigUint64Array([BigInt(value), BigInt(value)])
      symbols.setrlimit(RESOURCES[resource], ptr(pair))
    },
    sharedMemory() {
      const info = new BigUint64Array(SYSINFO_WORDS)
      if (symbols.sysinfo(ptr(info)) !== 0) return Number.POSITIVE_INFINITY
      const word = (at: number): number => Number(info[at] ?? 0n)
      const unit = new Uint32Array(info.buffer)[SYSINFO_UNIT] || 1
      return (word(SYSINFO_SHARED) + word(SYSINFO_SWAP) - word(SYSINFO_FREE_SWAP)) * unit
    },
    rest: (microseconds) => void symbols.usleep(microseconds),
    removeObject(kind, id) {
      if (kind === 'segment') symbols.shmctl(id, IPC_RMID, null)
      else if (kind === 'semaphores') symbols.semctl(id, 0, IPC_RMID)
      else symbols.msgctl(id, IPC_RMID, null)
    },
  }
}

/** Returns the C library's functions by name. Throws if there is no library. */
export function openLibc<Functions extends Record<string, FFIFunction>>(
  functions: Functions,
): Library<Functions>['symbols'] {
  const errors: unknown[] = []
  for (const library of LIBRARIES) {
    try {
      return dlopen(library, functions).symbols
    } catch (error) {
      errors.push(error)
    }
  }
  throw new AggregateError(errors, `None of ${LIBRARIES.join(', ')} could be loaded.`)
}
