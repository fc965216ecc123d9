import { type Pointer, ptr } from 'bun:ffi'
import { openLibc } from '../libc.ts'

/**
 * What libproc and sysctl(3) report of processes, and where. Offsets and lengths follow from the structures of
 * bsd/sys/proc_info.h, on 64-bit systems; those of `struct proc_uniqidentifierinfo` from bsd/sys/proc_info_private.h.
 */

/** Kinds of lists of processes. */
const PROC_ALL_PIDS = 1
const PROC_RUID_ONLY = 5

/** Kinds of reports on a process: the number for proc_pidinfo, and the length of the structure. */
const REPORTS = {
  /** `struct proc_bsdinfo` */
  process: { flavor: 3, bytes: 136 },
  /** `struct proc_taskinfo` */
  task: { flavor: 4, bytes: 96 },
  /** `struct proc_uniqidentifierinfo` */
  identity: { flavor: 17, bytes: 56 },
} as const

/** PROC_PIDLISTFDS, and the length of its `struct proc_fdinfo`. */
const PROC_PIDLISTFDS = 1
const FD_BYTES = 8

/** Kinds of reports on a descriptor by its type: the number for proc_pidfdinfo, and the length of the structure. */
const FD_REPORTS: Readonly<Record<number, { flavor: number; bytes: number }>> = {
  /** PROX_FDTYPE_VNODE: `struct vnode_fdinfowithpath` */
  1: { flavor: 2, bytes: 1_200 },
  /** PROX_FDTYPE_SOCKET: `struct socket_fdinfo` */
  2: { flavor: 3, bytes: 792 },
  /** PROX_FDTYPE_PIPE: `struct pipe_fdinfo` */
  6: { flavor: 6, bytes: 184 },
}

/** CTL_KERN and KERN_PROCARGS2 of sys/sysctl.h, and the most that it returns (ARG_MAX of sys/syslimits.h). */
const CTL_KERN = 1
const KERN_PROCARGS2 = 49
const ARGUMENT_BYTES = 1024 * 1024

/** PROC_PIDPATHINFO_MAXSIZE. */
const PATH_BYTES = 4_096

/** Room for more processes or descriptors than a list had a moment ago. */
const SPARE = 64

/** RLIMIT_NOFILE of sys/resource.h. */
const RLIMIT_NOFILE = 8

/** A report, or null if there is none: the process has ended, or is not shown. */
type Report = Uint8Array | null

/** The calls of libproc and the C library that show processes. */
export interface LibprocCalls {
  /** Returns the numbers of all processes, or of those of a user. */
  pids(uid?: number): number[]
  report(pid: number, kind: keyof typeof REPORTS): Report
  /** Returns the bytes of a list of `struct proc_fdinfo`. */
  descriptors(pid: number): Report
  /** @param type what that list has for the descriptor */
  descriptor(pid: number, fd: number, type: number): Report
  /** Returns what KERN_PROCARGS2 has: see `argumentsIn`. */
  arguments(pid: number): Report
  /** Returns the absolute path of its program; empty if it is not known. */
  path(pid: number): string
  session(pid: number): number
  /** Returns `struct timeval` of the machine's start. */
  bootTime(): Report
  /** Returns how many nanoseconds a tick of the processor's clock takes. */
  nanosecondsPerTick(): number
  maxOpenFiles(): number | null
  /** Reports whether a signal is ignored. */
  ignores(signal: number): boolean
}

/** Loads the system's library. Throws if there is none. */
export function loadLibproc(): LibprocCalls {
  const calls = openLibc({
    proc_listpids: { args: ['u32', 'u32', 'ptr', 'int'], returns: 'int' },
    proc_pidinfo: { args: ['int', 'int', 'u64', 'ptr', 'int'], returns: 'int' },
    proc_pidfdinfo: { args: ['int', 'int', 'int', 'ptr', 'int'], returns: 'int' },
    proc_pidpath: { args: ['int', 'ptr', 'u32'], returns: 'int' },
    sysctl: { args: ['ptr', 'u32', 'ptr', 'ptr', 'ptr', 'u64'], returns: 'int' },
    sysctlbyname: { args: ['ptr', 'ptr', 'ptr', 'ptr', 'u64'], returns: 'int' },
    getsid: { args: ['int'], returns: 'int' },
    getrlimit: { args: ['int', 'ptr'], returns: 'int' },
    sigaction: { args: ['int', 'ptr', 'ptr'], returns: 'int' },
    mach_timebase_info: { args: ['ptr'], returns: 'int' },
  })
  /** Read into by one call at a time. */
  const argumentBytes = new Uint8Array(ARGUMENT_BYTES)
  /** Calls a function that fills a buffer, with one as long as it asks for. */
  const list = (fill: (buffer: Pointer | null, bytes: number) => number, each: number): Uint8Array => {
    const bytes = new Uint8Array(Math.max(0, fill(null, 0)) + SPARE * each)
    return bytes.subarray(0, Math.max(0, fill(ptr(bytes), bytes.length)))
  }
  return {
    pids(uid) {
      const kind = uid === undefined ? PROC_ALL_PIDS : PROC_RUID_ONLY
      const bytes = list((buffer, length) => calls.proc_listpids(kind, uid ?? 0, buffer, length), 4)
      const view = new DataView(bytes.buffer, 0, bytes.length)
      const pids = Array.from({ length: bytes.length >> 2 }, (_, index) => view.getInt32(4 * index, true))
      return pids.filter((pid) => pid > 0)
    },
    report(pid, kind) {
      const { flavor, bytes } = REPORTS[kind]
      const report = new Uint8Array(bytes)
      return calls.proc_pidinfo(pid, flavor, 0, ptr(report), bytes) === bytes ? report : null
    },
    descriptors(pid) {
      const fill = (buffer: Pointer | null, length: number): number =>
        calls.proc_pidinfo(pid, PROC_PIDLISTFDS, 0, buffer, length)
      const bytes = list(fill, FD_BYTES)
      return bytes.length === 0 ? null : bytes
    },
    descriptor(pid, fd, type) {
      const kind = FD_REPORTS[type]
      if (kind === undefined) return null
      const report = new Uint8Array(kind.bytes)
      const length = calls.proc_pidfdinfo(pid, fd, kind.flavor, ptr(report), kind.bytes)
      return length === kind.bytes ? report : null
    },
    arguments(pid) {
      const name = new Int32Array([CTL_KERN, KERN_PROCARGS2, pid])
      const length = new BigUint64Array([BigInt(ARGUMENT_BYTES)])
      if (calls.sysctl(ptr(name), 3, ptr(argumentBytes), ptr(length), null, 0) !== 0) return null
      return argumentBytes.subarray(0, Number(length[0]))
    },
    path(pid) {
      const path = Buffer.alloc(PATH_BYTES)
      return path.toString('utf8', 0, Math.max(0, calls.proc_pidpath(pid, ptr(path), PATH_BYTES)))
    },
    session: (pid) => calls.getsid(pid),
    bootTime() {
      const time = new Uint8Array(16)
      const length = new BigUint64Array([16n])
      const name = Buffer.from('kern.boottime\0')
      return calls.sysctlbyname(ptr(name), ptr(time), ptr(length), null, 0) === 0 ? time : null
    },
    nanosecondsPerTick() {
      const [numerator = 1, denominator = 1] = fillWords((words) => calls.mach_timebase_info(ptr(words)))
      return numerator / (denominator || 1)
    },
    maxOpenFiles() {
      const pair = new BigUint64Array(2)
      return calls.getrlimit(RLIMIT_NOFILE, ptr(pair)) === 0 ? Number(pair[0]) : null
    },
    ignores(signal) {
      // struct sigaction of sys/signal.h: the handler, of which 1 is SIG_IGN, a mask and flags.
      const action = new BigUint64Array(2)
      return calls.sigaction(signal, null, ptr(action)) === 0 && action[0] === 1n
    },
  }
}

function fillWords(fill: (words: Uint32Array) => unknown): Uint32Array {
  const words = new Uint32Array(2)
  fill(words)
  return words
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length)

/** Returns the text up to the first zero. */
function textAt(bytes: Uint8Array, at: number, length: number): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + at, length)
  const end = text.indexOf(0)
  return text.toString('utf8', 0, end === -1 ? length : end)
}

/** Values of `pbi_status` (bsd/sys/proc.h). */
export const SSTOP = 4
export const SZOMB = 5

/** Reads a `struct proc_bsdinfo`. */
export function processIn(report: Uint8Array) {
  const view = viewOf(report)
  return {
    status: view.getUint32(4, true),
    parent: view.getUint32(16, true),
    uid: view.getUint32(20, true),
    // pbi_comm, which the kernel cuts to 15 characters.
    name: textAt(report, 48, 16),
    group: view.getUint32(100, true),
    // Of its terminal: the group in the foreground.
    foregroundGroup: view.getUint32(112, true),
    /** Microseconds since 1970. */
    startedUs: view.getBigUint64(120, true) * 1_000_000n + view.getBigUint64(128, true),
  }
}

/** Reads a `struct proc_taskinfo`. */
export function taskIn(report: Uint8Array) {
  const view = viewOf(report)
  return {
    residentBytes: Number(view.getBigUint64(8, true)),
    /** Ticks of the processor's clock. */
    ticks: Number(view.getBigUint64(16, true) + view.getBigUint64(24, true)),
    threads: view.getInt32(84, true),
    runningThreads: view.getInt32(88, true),
  }
}

/** Reads a `struct proc_uniqidentifierinfo`: numbers that no other process has had since the machine started. */
export function identityIn(report: Uint8Array): { own: bigint; parent: bigint } {
  const view = viewOf(report)
  // p_puniqueid stays that of the process that has started it, whoever adopts it.
  return { own: view.getBigUint64(16, true), parent: view.getBigUint64(24, true) }
}

/** Reads a list of `struct proc_fdinfo`. */
export function descriptorsIn(list: Uint8Array): { fd: number; type: number }[] {
  const view = viewOf(list)
  return Array.from({ length: Math.floor(list.length / FD_BYTES) }, (_, index) => ({
    fd: view.getInt32(index * FD_BYTES, true),
    type: view.getUint32(index * FD_BYTES + 4, true),
  }))
}

/** Reads a `struct vnode_fdinfowithpath`. */
export function fileIn(report: Uint8Array): { path: string; dev: bigint; ino: bigint } {
  const view = viewOf(report)
  return {
    dev: BigInt(view.getUint32(24, true)),
    ino: view.getBigUint64(32, true),
    path: textAt(report, 176, report.length - 176),
  }
}

/** Returns the handle in a `struct socket_fdinfo` (soi_so) or in a `struct pipe_fdinfo` (pipe_handle). */
export const handleIn = (report: Uint8Array): bigint => viewOf(report).getBigUint64(160, true)

/** SOCKINFO_TCP, TSI_S_LISTEN and INI_IPV4. */
const SOCKINFO_TCP = 2
const TSI_S_LISTEN = 1
const INI_IPV4 = 1

/** Reads a `struct socket_fdinfo`; null if it is not one of TCP. */
export function tcpSocketIn(
  report: Uint8Array,
): { address: string; port: number; remotePort: number; listens: boolean } | null {
  const view = viewOf(report)
  if (view.getInt32(256, true) !== SOCKINFO_TCP) return null
  const isIpv4 = (view.getUint8(288) & INI_IPV4) !== 0
  // An IPv4 address is in the last four bytes of insi_laddr.
  const [from, words] = isIpv4 ? [324, 1] : [312, 4]
  const word = (index: number): string =>
    view
      .getUint32(from + 4 * index, true)
      .toString(16)
      .padStart(8, '0')
  return {
    address: Array.from({ length: words }, (_, index) => word(index))
      .join('')
      .toUpperCase(),
    // Ports are in network byte order at the beginning of an int.
    port: view.getUint16(268),
    remotePort: view.getUint16(264),
    listens: view.getInt32(344, true) === TSI_S_LISTEN,
  }
}

/**
 * Reads what KERN_PROCARGS2 returns: the number of arguments, the path of the program, zeros, the arguments and then the
 * variables, each with a zero behind it. The kernel leaves out the variables of Apple's own programs.
 */
export function argumentsIn(bytes: Uint8Array): { commandLine: string; environment: string } {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
  const count = bytes.length < 4 ? 0 : viewOf(bytes).getInt32(0, true)
  let at = text.indexOf('\0', 4)
  while (at !== -1 && text[at] === '\0') at += 1
  const begin = at === -1 ? text.length : at
  let end = begin
  for (let index = 0; index < count; index += 1) {
    const zero = text.indexOf('\0', end)
    end = zero === -1 ? text.length : zero + 1
  }
  // An empty text ends the variables; strings of the kernel follow.
  const last = text.indexOf('\0\0', end)
  return {
    commandLine: text.slice(begin, end),
    environment: text.slice(end, last === -1 ? undefined : last + 1),
  }
}
