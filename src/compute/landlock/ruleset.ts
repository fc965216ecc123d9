/**
 * Which rights the kernel's Landlock knows, by version of its interface.
 * See landlock(7) and linux/landlock.h.
 */

const EXECUTE = 1n << 0n
const WRITE_FILE = 1n << 1n
const READ_FILE = 1n << 2n
const READ_DIR = 1n << 3n
const REFER = 1n << 13n
const TRUNCATE = 1n << 14n
const IOCTL_DEV = 1n << 15n
const RESOLVE_UNIX = 1n << 16n

/** The rights of version 1: bits 0 to 12. */
const VERSION_1 = (1n << 13n) - 1n

const SCOPE_ABSTRACT_UNIX_SOCKET = 1n << 0n
const SCOPE_SIGNAL = 1n << 1n

/** The rights that rules can name under this kernel's Landlock. */
interface Rights {
  /** All rights over files. A right that no rule grants is denied. */
  all: bigint
  /** Reading and executing. */
  read: bigint
  /** Listing a directory. */
  list: bigint
  /** The rights in `all` that a rule for a single file may name. */
  file: bigint
  /** Kinds of contact with processes outside that are refused. */
  scoped: bigint
}

/** Returns the rights that a version of the interface has. */
export function rightsOf(version: number): Rights {
  let all = VERSION_1
  if (version >= 2) all |= REFER
  if (version >= 3) all |= TRUNCATE
  if (version >= 5) all |= IOCTL_DEV
  if (canScopeUnixSockets(version)) all |= RESOLVE_UNIX
  return {
    all,
    read: EXECUTE | READ_FILE | READ_DIR,
    list: READ_DIR,
    file: all & (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV | RESOLVE_UNIX),
    scoped: version >= 6 ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0n,
  }
}

/** `struct landlock_ruleset_attr` in the size that the version knows. */
export function rulesetAttribute(version: number): Uint8Array {
  const { all, scoped } = rightsOf(version)
  const fields = version >= 6 ? [all, 0n, scoped] : version >= 4 ? [all, 0n] : [all]
  return new Uint8Array(new BigUint64Array(fields).buffer)
}

/** `struct landlock_path_beneath_attr`, which is packed. */
export function ruleAttribute(access: bigint, fd: number): Uint8Array {
  const bytes = new Uint8Array(12)
  const view = new DataView(bytes.buffer)
  view.setBigUint64(0, access, true)
  view.setInt32(8, fd, true)
  return bytes
}

/**
 * Reports whether rules can keep processes from the Unix sockets of others by path, and leave them their own: Linux 7.1
 * and later.
 */
export const canScopeUnixSockets = (version: number): boolean => version >= 9

/** Returns what an older version cannot deny, each a sentence for a person; empty for the newest. */
export function gapsOf(version: number): string[] {
  const gaps = ["commands can set limits and priorities of the user's other processes (prlimit, nice)"]
  if (version < 3) gaps.push('commands can truncate files that they may not write')
  if (version < 6) gaps.push("commands can send signals to the user's other processes")
  return gaps
}
