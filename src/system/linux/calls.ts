import { ptr } from 'bun:ffi'
import { openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { ifPresent } from '../../runtime/if-present.ts'
import { openLibc } from '../libc.ts'
import type { Libc } from '../system.ts'

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
const LAST_SIGNAL = 64
/** SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGCHLD, SIGSTOP, SIGPWR, SIGSYS, and those of the C library's threads. */
const USED_SIGNALS = [1, 2, 9, 15, 17, 19, 30, 31, 32, 33]
const SIG_IGN = 1
const RLIMIT_FSIZE = 1
const RLIMIT_CORE = 4
const RLIMIT_NPROC = 6
const RLIMIT_NOFILE = 7

const RESOURCES = {
  fileBytes: RLIMIT_FSIZE,
  core: RLIMIT_CORE,
  processes: RLIMIT_NPROC,
  openFiles: RLIMIT_NOFILE,
}

/** Loads the C library; about 0.3 ms. Throws if there is none. */
export function loadLinuxLibc(): Libc {
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
    rest: (microseconds) => void symbols.usleep(microseconds),
    poolThreads() {
      try {
        const threads = readdirSync('/proc/self/task')
        const names = threads.map((thread) => readFileSync(`/proc/self/task/${thread}/comm`, 'utf8'))
        return names.filter((name) => name.startsWith('Bun Pool')).length
      } catch {
        // One that has ended since, or no /proc: the next look finds out.
        return 0
      }
    },
    openOomScore(inherited) {
      const own = openOwnOomScore()
      if (own !== null) return own
      const leadsTo = ifPresent(() => readlinkSync(`/proc/self/fd/${inherited}`))
      return leadsTo?.endsWith('/oom_score_adj') ? inherited : null
    },
  }
}

/** Opens this process's own priority when memory runs out, to be written; null if that is not permitted. */
export function openOwnOomScore(): number | null {
  try {
    return openSync('/proc/self/oom_score_adj', 'r+')
  } catch {
    return null
  }
}
