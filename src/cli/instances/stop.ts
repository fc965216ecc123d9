import { signal } from '../../compute/processes.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import { isInUse, readInstance } from '../../storage/data-directory.ts'
import { isAlive, markOf, type ProcessMark } from '../../system/process-mark.ts'
import { CommandError } from '../errors.ts'
import type { ProcessContext } from '../process-context.ts'
import { checkAccessible, holdsDirectory } from './directory-lock.ts'
import { listInstances } from './registry.ts'

/** Milliseconds between checks for the process's end. */
const POLL_INTERVAL_MS = 20

/** Milliseconds that the kernel may take to end a killed process. */
const KILL_TIMEOUT_MS = 5_000

/** A stopped instance. */
export interface StoppedInstance {
  data_dir: string
  pid: number
  /** Whether it was killed. */
  killed: boolean
}

/** How to stop an instance. */
interface StopOptions {
  /** Milliseconds that an orderly stop may take. */
  timeoutMs: number
  /** Whether to kill it after that. */
  force: boolean
  /** Environment, for the registry's directory. */
  env: ProcessContext['env']
}

/**
 * Stops the instance of a data directory with SIGTERM and waits for its end. Finds its process by the lock it holds,
 * so no other program with a reused pid is signalled.
 *
 * @throws CommandError if none runs, or it does not end in time
 */
export async function stopInstance(
  dataDir: string,
  { timeoutMs, force, env }: StopOptions,
): Promise<StoppedInstance> {
  checkAccessible(dataDir)
  const found = await findProcess(dataDir, timeoutMs, env)
  const { pid } = found
  signal(pid, 'SIGTERM')
  // A process stopped with Ctrl-Z handles signals only after SIGCONT.
  signal(pid, 'SIGCONT')
  if (await waitForExit(found, timeoutMs)) return { data_dir: dataDir, pid, killed: false }
  if (!force) {
    throw new CommandError(
      `The berth on ${dataDir} (pid ${pid}) has not ended within ${timeoutMs / 1_000} s. Give it longer with --timeout, or have it killed then: berth stop --force --data ${shellQuote([dataDir])}`,
    )
  }
  if (isAlive(found)) signal(pid, 'SIGKILL')
  if (await waitForExit(found, KILL_TIMEOUT_MS)) return { data_dir: dataDir, pid, killed: true }
  throw new CommandError(
    `The berth on ${dataDir} (pid ${pid}) does not end when it is killed: the kernel holds it.`,
  )
}

/** Finds the process of a directory's instance. Waits for one that is starting. */
async function findProcess(
  dataDir: string,
  timeoutMs: number,
  env: ProcessContext['env'],
): Promise<ProcessMark> {
  for (const deadline = performance.now() + timeoutMs; ; await Bun.sleep(POLL_INTERVAL_MS)) {
    // If the directory was removed while its berth runs, only the registry has the process.
    const named = readInstance(dataDir) ?? listInstances(env).find(({ data_dir }) => data_dir === dataDir)
    // In this order: a process that holds the lock after its mark was taken is the marked one.
    const mark = named && markOf(named.pid)
    if (mark && holdsDirectory(mark.pid, dataDir)) return mark
    if (!isInUse(dataDir)) throw new CommandError(`No berth runs on ${dataDir}. ${elsewhere(env)}`)
    if (performance.now() < deadline) continue
    throw new CommandError(
      `A berth runs on ${dataDir}, but its process cannot be seen from here: stop it where it was started, in another container or by another user.`,
    )
  }
}

/** Says which instances run on other directories. */
function elsewhere(env: ProcessContext['env']): string {
  const [first, ...others] = listInstances(env)
  if (first === undefined || others.length > 0) return '"berth list" shows those that run.'
  const { data_dir, base_url } = first
  return `One runs on ${data_dir}, at ${base_url}: berth stop --data ${shellQuote([data_dir])}`
}

async function waitForExit(mark: ProcessMark, withinMs: number): Promise<boolean> {
  for (const deadline = performance.now() + withinMs; isAlive(mark); await Bun.sleep(POLL_INTERVAL_MS)) {
    if (performance.now() > deadline) return false
  }
  return true
}
