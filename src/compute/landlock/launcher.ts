import { ptr } from 'bun:ffi'
import { closeSync, fstatSync, openSync, readFileSync, writeSync } from 'node:fs'
import { messageOf } from '../../runtime/error-info.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { openLibc } from '../../system/libc.ts'
import { openOwnOomScore } from '../../system/linux/calls.ts'
import { OOM_SCORE_FD } from '../sandboxd/protocol.ts'
import { type LandlockPlan, PLAN_FD } from './plan.ts'
import { rightsOf, ruleAttribute, rulesetAttribute } from './ruleset.ts'

/** Opens a path only to name it, without any right over it. */
const O_PATH = 0o10000000

/**
 * Runs the hidden command `berth __landlock`: gives up rights, then executes the program of its plan. Landlock
 * applies to the calling thread only and Bun has several; the executed program starts with one thread, which keeps
 * that thread's restrictions.
 */
export async function runLauncher(): Promise<void> {
  try {
    const plan = JSON.parse(readFileSync(PLAN_FD, 'utf8')) as LandlockPlan
    closeSync(PLAN_FD)
    const calls = loadCalls()
    calls.dropPrivileges()
    // For sandboxd, which changes it for its commands: /proc cannot be written later.
    const oomScore = openOwnOomScore()
    restrict(calls, plan)
    for (const fd of plan.keep) calls.keepOpen(fd)
    // Nothing else of this process is needed any more, whatever has the number now.
    if (oomScore !== null) calls.duplicate(oomScore, OOM_SCORE_FD)
    calls.become(plan.argv, plan.env)
  } catch (error) {
    writeSync(2, `${messageOf(error)}\n`)
    process.exit(1)
  }
}

function restrict(calls: LandlockCalls, { read, list, write, announce }: LandlockPlan): void {
  const version = calls.version()
  if (announce) writeSync(2, `${version}\n`)
  const rights = rightsOf(version)
  const ruleset = calls.createRuleset(rulesetAttribute(version))
  const allow = (path: string, access: bigint): void => {
    const fd = ifPresent(() => openSync(path, O_PATH))
    if (fd === null) return
    calls.addRule(ruleset, ruleAttribute(fstatSync(fd).isDirectory() ? access : access & rights.file, fd))
    closeSync(fd)
  }
  for (const path of read) allow(path, rights.read)
  for (const path of list) allow(path, rights.list)
  for (const path of write) allow(path, rights.all)
  calls.restrictSelf(ruleset)
}

/** System call numbers, the same on all 64-bit architectures. */
const LANDLOCK_CREATE_RULESET = 444
const LANDLOCK_ADD_RULE = 445
const LANDLOCK_RESTRICT_SELF = 446
const CREATE_RULESET_VERSION = 1
const RULE_PATH_BENEATH = 1

const F_SETFD = 2
const PR_CAPBSET_DROP = 24
const PR_SET_SECUREBITS = 28
const PR_SET_NO_NEW_PRIVS = 38
const PR_CAP_AMBIENT = 47
const PR_CAP_AMBIENT_CLEAR_ALL = 4
/** SECBIT_NOROOT, SECBIT_NO_SETUID_FIXUP and their locks: user 0 gets no powers for its number. */
const SECUREBITS = 0b1111n
/** Highest capability number that Linux can have. */
const LAST_CAPABILITY = 63

/** The launcher's system calls. Each throws if the kernel refuses. */
export interface LandlockCalls {
  /** Version of the kernel's Landlock interface. */
  version(): number
  /** Descriptor of a new ruleset. */
  createRuleset(attribute: Uint8Array): number
  addRule(ruleset: number, attribute: Uint8Array): void
  /** Puts the calling thread and everything it starts under the ruleset, irrevocably. */
  restrictSelf(ruleset: number): void
  /** Gives up all capabilities and every way to new ones. */
  dropPrivileges(): void
  /** Leaves a descriptor to the program that replaces this one: Bun marks those from 4 on to be closed then. */
  keepOpen(fd: number): void
  /** Gives a descriptor another number too, and leaves that one to the program that replaces this one. */
  duplicate(fd: number, number: number): void
  /** Replaces this process. Returns only by throwing. */
  become(argv: readonly string[], env: Readonly<Record<string, string>>): never
}

/** Loads the C library. Throws if there is none. */
export function loadCalls(): LandlockCalls {
  const libc = openLibc({
    syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64' },
    prctl: { args: ['int', 'u64', 'u64', 'u64', 'u64'], returns: 'int' },
    fcntl: { args: ['int', 'int', 'int'], returns: 'int' },
    dup2: { args: ['int', 'int'], returns: 'int' },
    capset: { args: ['ptr', 'ptr'], returns: 'int' },
    execve: { args: ['ptr', 'ptr', 'ptr'], returns: 'int' },
  })
  const syscall = (number: number, ...args: Array<bigint | number>): number => {
    const [a = 0, b = 0, c = 0, d = 0] = args
    return Number(libc.syscall(BigInt(number), BigInt(a), BigInt(b), BigInt(c), BigInt(d)))
  }
  return {
    version() {
      const version = syscall(LANDLOCK_CREATE_RULESET, 0, 0, CREATE_RULESET_VERSION)
      if (version < 1) throw new Error('This kernel has no Landlock, or it is not switched on.')
      return version
    },
    createRuleset(attribute) {
      const fd = syscall(LANDLOCK_CREATE_RULESET, ptr(attribute), attribute.length, 0)
      if (fd < 0) throw new Error('The kernel refused the Landlock ruleset.')
      return fd
    },
    addRule(ruleset, attribute) {
      const result = syscall(LANDLOCK_ADD_RULE, ruleset, RULE_PATH_BENEATH, ptr(attribute), 0)
      if (result !== 0) throw new Error('The kernel refused a Landlock rule.')
    },
    restrictSelf(ruleset) {
      if (syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0) !== 0) {
        throw new Error('The kernel refused to put this process under Landlock.')
      }
    },
    dropPrivileges() {
      for (let capability = 0; capability <= LAST_CAPABILITY; capability += 1) {
        libc.prctl(PR_CAPBSET_DROP, BigInt(capability), 0n, 0n, 0n)
      }
      libc.prctl(PR_SET_SECUREBITS, SECUREBITS, 0n, 0n, 0n)
      libc.prctl(PR_CAP_AMBIENT, BigInt(PR_CAP_AMBIENT_CLEAR_ALL), 0n, 0n, 0n)
      // _LINUX_CAPABILITY_VERSION_3, this process; then three empty sets in two halves.
      const header = new Int32Array([0x20080522, 0])
      if (libc.capset(ptr(header), ptr(new Uint32Array(6))) !== 0)
        throw new Error('Capabilities cannot be given up.')
      if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1n, 0n, 0n, 0n) !== 0) {
        throw new Error('The kernel refused no_new_privs, without which Landlock cannot be used.')
      }
    },
    keepOpen: (fd) => void libc.fcntl(fd, F_SETFD, 0),
    duplicate: (fd, number) => void libc.dup2(fd, number),
    become(argv, env) {
      const [program] = argv
      if (program === undefined) throw new Error('There is no program to become.')
      const kept: Buffer[] = []
      const pointers = (texts: readonly string[]): BigUint64Array => {
        const buffers = texts.map((text) => Buffer.from(`${text}\0`))
        kept.push(...buffers)
        return new BigUint64Array([...buffers.map((buffer) => BigInt(ptr(buffer))), 0n])
      }
      const args = pointers(argv)
      const variables = pointers(Object.entries(env).map(([name, value]) => `${name}=${value}`))
      const path = Buffer.from(`${program}\0`)
      libc.execve(ptr(path), ptr(args), ptr(variables))
      throw new Error(`${program} cannot be executed under Landlock (${kept.length} strings were passed).`)
    },
  }
}
