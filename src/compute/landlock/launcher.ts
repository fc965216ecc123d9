import { closeSync, fstatSync, openSync, readFileSync, writeSync } from 'node:fs'
import { messageOf } from '../../runtime/error-info.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { OOM_SCORE_FD } from '../sandboxd/protocol.ts'
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
    calls.dropPrivileges()
    const oomScore = openOomScore()
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

/**
 * Opens the process's own priority when memory runs out, which sandboxd changes for its commands. /proc cannot be written
 * later. Returns null if that is not permitted: the kernel's choice then.
 */
function openOomScore(): number | null {
  try {
    return openSync('/proc/self/oom_score_adj', 'r+')
  } catch {
    return null
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
