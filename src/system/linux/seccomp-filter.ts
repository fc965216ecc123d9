import { existsSync } from 'node:fs'

/**
 * The system calls that a server's commands may not make, as a filter program for seccomp(2).
 *
 * It closes what namespaces do not separate: kernel keyrings belong to the user, whatever namespace asks, and sockets
 * of virtual machines (vsock) reach the host. io_uring makes system calls that no filter sees; programs do without. So they
 * do without asynchronous I/O of the older kind (io_setup): the machine has so many requests for all (fs.aio-max-nr), and one
 * call takes them.
 *
 * It also protects sandboxd, which has the same user as the commands: they could have it run last or open no file, and
 * then exceed limits that it enforces.
 *
 * And it protects berth, which opens files of servers: a program that has reserved one could keep it waiting.
 */

/** A processor architecture: its number in audit(7) and the numbers of its system calls. */
interface Architecture {
  audit: number
  /** System calls that this kernel seems not to have. */
  absent: readonly number[]
  socket: number
  socketpair: number
  /** prlimit64; changes a process's limits if it is given some. */
  limit: number
  prctl: number
  fcntl: number
  /** chmod, fchmod, fchmodat, fchmodat2, as far as there are: the number, and which argument is the mode. */
  modes: readonly { number: number; mode: number }[]
  /** setpriority and ioprio_set: the kind of group, then its number; the last kind is all processes of a user. */
  groups: readonly { number: number; user: number }[]
  /** sched_setparam, sched_setscheduler, sched_setaffinity, sched_setattr. */
  schedule: readonly number[]
  /** First number of another interface of the same architecture; null if it has none. */
  otherInterface: number | null
}

/** io_uring_setup, io_uring_enter, io_uring_register; the same on all. */
const IO_URING = [425, 426, 427]

const ARCHITECTURES: Readonly<Partial<Record<NodeJS.Architecture, Architecture>>> = {
  // add_key, request_key, keyctl, io_setup; numbers from 2^30 on are x32's.
  x64: {
    audit: 0xc000003e,
    absent: [248, 249, 250, 206, ...IO_URING],
    socket: 41,
    socketpair: 53,
    limit: 302,
    prctl: 157,
    fcntl: 72,
    modes: [
      { number: 90, mode: 1 },
      { number: 91, mode: 1 },
      { number: 268, mode: 2 },
      { number: 452, mode: 2 },
    ],
    groups: [
      { number: 141, user: 2 },
      { number: 251, user: 3 },
    ],
    schedule: [142, 144, 203, 314],
    otherInterface: 2 ** 30,
  },
  arm64: {
    audit: 0xc00000b7,
    absent: [217, 218, 219, 0, ...IO_URING],
    socket: 198,
    socketpair: 199,
    limit: 261,
    prctl: 167,
    fcntl: 25,
    modes: [
      { number: 52, mode: 1 },
      { number: 53, mode: 2 },
      { number: 452, mode: 2 },
    ],
    groups: [
      { number: 140, user: 2 },
      { number: 30, user: 3 },
    ],
    schedule: [118, 119, 122, 274],
    otherInterface: null,
  },
}

/** Address families. */
const AF_UNIX = 1
const AF_VSOCK = 40

/** Kinds of sockets, and the part of the argument that names one; flags are beside it. */
const SOCK_STREAM = 1
const SOCK_SEQPACKET = 5
const SOCK_TYPE_MASK = 0xf

const PR_SET_DUMPABLE = 4

/** F_SETLEASE and F_SETDELEG: whoever opens, or changes, what a program has reserved so waits for it, by default 45 s. */
const RESERVE = [1024, 1040]

/** S_ISUID and S_ISGID: whoever executes the file has its owner's, or its group's, rights. */
const SET_ID_BITS = 0o6000

const EPERM = 1
const ENOSYS = 38
const EAFNOSUPPORT = 97

/** Instructions of the classic BPF machine, see linux/bpf_common.h. */
const LOAD = 0x20
const JUMP_IF_EQUAL = 0x15
const JUMP_IF_NOT_LESS = 0x35
const JUMP_IF_ANY_BIT = 0x45
const RETURN = 0x06
const AND = 0x54

const ALLOW = 0x7fff0000
const KILL_PROCESS = 0x80000000
const failWith = (errno: number): number => 0x00050000 | errno

/** Offsets in `struct seccomp_data`. */
const NUMBER = 0
const ARCHITECTURE = 4
/** The lower half of an argument of 8 bytes; the kernel takes an int from it. */
const argument = (index: number): number => 16 + 8 * index
const upperHalf = (index: number): number => argument(index) + 4

/** Bytes of one instruction, `struct sock_filter`. */
export const INSTRUCTION_BYTES = 8

type Instruction = [code: number, operand: number, then?: number, otherwise?: number]

/** What a filter refuses in addition. */
export interface FilterOptions {
  /**
   * Whether a request to hide the process from others of its user has no effect: such a process hides its descriptors too,
   * and with them its memory. Programs take it for granted, so it seems to succeed.
   */
  descriptorsShown: boolean
  /** Whether no file gets a set-user-id or set-group-id bit. */
  setIdBits: boolean
  /** Whether Unix sockets are refused, except pairs of streams. */
  unixSockets: boolean
}

/** What a person reads where the filter cannot be used. */
export const NO_FILTER =
  "commands can use the user's kernel keyring and vsock, since this kernel cannot filter system calls (seccomp)"

/** Reports whether this kernel filters system calls, and there is a filter for its processor. */
export function canFilterSystemCalls(): boolean {
  return ARCHITECTURES[process.arch] !== undefined && existsSync('/proc/sys/kernel/seccomp/actions_avail')
}

/**
 * Returns the filter for a processor architecture as an array of `struct sock_filter`; null for one that it does not
 * know. Programs for another architecture (32-bit ones) are killed: their calls have other numbers.
 *
 * @param protectedThreads threads whose limits and priorities cannot be changed
 */
export function systemCallFilter(
  arch: NodeJS.Architecture,
  protectedThreads: readonly number[],
  { descriptorsShown, setIdBits, unixSockets }: FilterOptions,
): Uint8Array | null {
  const architecture = ARCHITECTURES[arch]
  if (architecture === undefined) return null
  const { audit, absent, socket, socketpair, limit, prctl, fcntl, modes, groups, schedule, otherInterface } =
    architecture
  const unlessProtected = (index: number): Instruction[] => [
    [LOAD, argument(index)],
    ...protectedThreads.flatMap((thread) => refuseIf(JUMP_IF_EQUAL, thread, EPERM)),
    [RETURN, ALLOW],
  ]
  const program: Instruction[] = [
    [LOAD, ARCHITECTURE],
    [JUMP_IF_EQUAL, audit, 1, 0],
    [RETURN, KILL_PROCESS],
    [LOAD, NUMBER],
    ...(otherInterface === null ? [] : refuseIf(JUMP_IF_NOT_LESS, otherInterface, ENOSYS)),
    ...absent.flatMap((number) => refuseIf(JUMP_IF_EQUAL, number, ENOSYS)),
    ...forCall(socket, [
      [LOAD, argument(0)],
      ...[AF_VSOCK, ...(unixSockets ? [AF_UNIX] : [])].flatMap((family) =>
        refuseIf(JUMP_IF_EQUAL, family, EAFNOSUPPORT),
      ),
      [RETURN, ALLOW],
    ]),
    // A pair of streams stays connected to each other. Datagrams can be sent to any path from one of a pair.
    ...(unixSockets
      ? forCall(socketpair, [
          [LOAD, argument(1)],
          [AND, SOCK_TYPE_MASK],
          [JUMP_IF_EQUAL, SOCK_STREAM, 2, 0],
          [JUMP_IF_EQUAL, SOCK_SEQPACKET, 1, 0],
          [RETURN, failWith(EAFNOSUPPORT)],
          [RETURN, ALLOW],
        ])
      : []),
    // Without new limits, the third argument, it only reads them.
    ...forCall(limit, [
      [LOAD, argument(2)],
      [JUMP_IF_EQUAL, 0, 0, 3],
      [LOAD, upperHalf(2)],
      [JUMP_IF_EQUAL, 0, 0, 1],
      [RETURN, ALLOW],
      ...unlessProtected(0),
    ]),
    ...(descriptorsShown
      ? forCall(prctl, [
          [LOAD, argument(0)],
          [JUMP_IF_EQUAL, PR_SET_DUMPABLE, 1, 0],
          [RETURN, ALLOW],
          [RETURN, failWith(0)],
        ])
      : []),
    ...forCall(fcntl, [
      [LOAD, argument(1)],
      ...RESERVE.flatMap((command) => refuseIf(JUMP_IF_EQUAL, command, EPERM)),
      [RETURN, ALLOW],
    ]),
    // A file gets these bits by no other call: what writes to it takes them away.
    ...(setIdBits
      ? modes.flatMap(({ number, mode }) =>
          forCall(number, [
            [LOAD, argument(mode)],
            ...refuseIf(JUMP_IF_ANY_BIT, SET_ID_BITS, EPERM),
            [RETURN, ALLOW],
          ]),
        )
      : []),
    ...groups.flatMap(({ number, user }) =>
      forCall(number, [[LOAD, argument(0)], ...refuseIf(JUMP_IF_EQUAL, user, EPERM), ...unlessProtected(1)]),
    ),
    ...schedule.flatMap((number) => forCall(number, unlessProtected(0))),
    [RETURN, ALLOW],
  ]
  const bytes = new Uint8Array(program.length * INSTRUCTION_BYTES)
  const view = new DataView(bytes.buffer)
  program.forEach(([code, operand, then = 0, otherwise = 0], index) => {
    const at = index * INSTRUCTION_BYTES
    view.setUint16(at, code, true)
    view.setUint8(at + 2, then)
    view.setUint8(at + 3, otherwise)
    view.setUint32(at + 4, operand, true)
  })
  return bytes
}

/** Returns instructions that run only for a system call. They have to return. */
const forCall = (number: number, instructions: readonly Instruction[]): Instruction[] => [
  [JUMP_IF_EQUAL, number, 0, instructions.length],
  ...instructions,
]

const refuseIf = (jump: number, operand: number, errno: number): Instruction[] => [
  [jump, operand, 0, 1],
  [RETURN, failWith(errno)],
]
