import { ptr } from 'bun:ffi'
import { closeSync, openSync, readdirSync } from 'node:fs'
import { openLibc } from '../libc.ts'
import type { Confinement } from '../system.ts'
import { type FilterOptions, INSTRUCTION_BYTES, systemCallFilter } from './seccomp-filter.ts'

/** seccomp(2), by processor. */
const SECCOMP = process.arch === 'arm64' ? 277 : 317
const SECCOMP_SET_MODE_FILTER = 1
/** All threads of this process; and without the mitigations that slow down filtered programs before Linux 5.16. */
const SECCOMP_FLAGS = (1 << 0) | (1 << 2)

const LANDLOCK_CREATE_RULESET = 444
const LANDLOCK_ADD_RULE = 445
const LANDLOCK_RESTRICT_SELF = 446
const CREATE_RULESET_VERSION = 1
const RULE_PATH_BENEATH = 1
const WRITE_FILE = 1n << 1n
const REFER = 1n << 13n
const SCOPE_ABSTRACT_UNIX_SOCKET = 1n
/** The first version in which a domain need not forbid moving files between directories, and the first with scopes. */
const VERSION_WITH_REFER = 2
const VERSION_WITH_SCOPES = 6
const O_PATH = 0o10000000

type SystemCall = (number: number, ...args: Array<number | bigint>) => number

function loadSystemCall(): SystemCall {
  const { syscall } = openLibc({
    syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64' },
  })
  return (number, ...args) => {
    const [a = 0, b = 0, c = 0, d = 0] = args
    return Number(syscall(BigInt(number), BigInt(a), BigInt(b), BigInt(c), BigInt(d)))
  }
}

/** Returns the version of this kernel's Landlock; a negative number if it has none. */
export const landlockVersion = (): number =>
  loadSystemCall()(LANDLOCK_CREATE_RULESET, 0, 0, CREATE_RULESET_VERSION)

/** Reports whether this kernel's Landlock can keep commands from writing to /proc. */
export const canForbidProcWrites = (): boolean => landlockVersion() >= VERSION_WITH_REFER

/** Reports whether this kernel's Landlock can hide abstract Unix sockets: Linux 6.12 and later. */
export const canHideAbstractSockets = (): boolean => landlockVersion() >= VERSION_WITH_SCOPES

/**
 * Confines this process and all it starts from now on, irrevocably. Call it when this process has all of its threads.
 * Requires `no_new_privs`. Throws if the kernel refuses.
 */
export function confine(
  { systemCalls, unixSockets, setIdBits, procWrites, abstractSockets }: Confinement,
  descriptorsShown = false,
): void {
  if (!systemCalls && !procWrites && !abstractSockets) return
  const call = loadSystemCall()
  if (procWrites || abstractSockets) enterDomain(call, procWrites, abstractSockets)
  if (systemCalls) filterSystemCalls(call, { descriptorsShown, setIdBits, unixSockets })
}

/**
 * Enters a Landlock domain that forbids writing to /proc, or connecting to abstract Unix sockets outside of it; see
 * landlock(7). It holds for the calling thread, which starts the commands.
 */
function enterDomain(call: SystemCall, procWrites: boolean, abstractSockets: boolean): void {
  // struct landlock_ruleset_attr: rights over files and over ports, and scopes, which older versions do not know.
  const files = procWrites ? REFER | WRITE_FILE : REFER
  const handled = new BigUint64Array(abstractSockets ? [files, 0n, SCOPE_ABSTRACT_UNIX_SOCKET] : [files])
  const ruleset = call(LANDLOCK_CREATE_RULESET, ptr(handled), handled.byteLength, 0)
  if (ruleset < 0) throw new Error('The kernel refused a Landlock ruleset.')
  try {
    // Every domain forbids moving files to other directories unless a rule allows it.
    allow(call, ruleset, '/', REFER)
    const places = procWrites ? readdirSync('/').filter((name) => name !== 'proc') : []
    for (const name of places) allow(call, ruleset, `/${name}`, WRITE_FILE)
    if (call(LANDLOCK_RESTRICT_SELF, ruleset, 0) !== 0) {
      throw new Error('The kernel refused to put this process under Landlock.')
    }
  } finally {
    closeSync(ruleset)
  }
}

/** Adds a rule that grants a right over a path and all below it. */
function allow(call: SystemCall, ruleset: number, path: string, right: bigint): void {
  const fd = openSync(path, O_PATH)
  try {
    // struct landlock_path_beneath_attr, which is packed.
    const rule = new Uint8Array(12)
    const view = new DataView(rule.buffer)
    view.setBigUint64(0, right, true)
    view.setInt32(8, fd, true)
    if (call(LANDLOCK_ADD_RULE, ruleset, RULE_PATH_BENEATH, ptr(rule), 0) !== 0) {
      throw new Error(`The kernel refused a Landlock rule for ${path}.`)
    }
  } finally {
    closeSync(fd)
  }
}

function filterSystemCalls(call: SystemCall, options: FilterOptions): void {
  const threads = readdirSync('/proc/self/task').map(Number)
  const filter = systemCallFilter(process.arch, threads, options)
  if (filter === null) throw new Error(`There is no filter of system calls for ${process.arch}.`)
  // struct sock_fprog: the number of instructions, padding, and their address.
  const program = new BigUint64Array([BigInt(filter.length / INSTRUCTION_BYTES), BigInt(ptr(filter))])
  if (call(SECCOMP, SECCOMP_SET_MODE_FILTER, SECCOMP_FLAGS, ptr(program)) !== 0) {
    throw new Error('The kernel refused the filter of system calls.')
  }
}
