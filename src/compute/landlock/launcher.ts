import { closeSync, fstatSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { messageOf } from '../../runtime/error-info.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { type LandlockPlan, PLAN_FD } from './plan.ts'
import { rightsOf, ruleAttribute, rulesetAttribute } from './ruleset.ts'
import { type LandlockCalls, loadCalls } from './syscalls.ts'

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
    preferForOutOfMemory()
    calls.dropPrivileges()
    restrict(calls, plan)
    for (const fd of plan.keep) calls.keepOpen(fd)
    calls.become(plan.argv, plan.env)
  } catch (error) {
    writeSync(2, `${messageOf(error)}\n`)
    process.exit(1)
  }
}

/** The kernel ends a server's processes before others; written now, since /proc cannot be written later. */
function preferForOutOfMemory(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Not permitted: the kernel's choice then.
  }
}

function restrict(calls: LandlockCalls, { read, write, announce }: LandlockPlan): void {
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
  for (const path of write) allow(path, rights.all)
  calls.restrictSelf(ruleset)
}
