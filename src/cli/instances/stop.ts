import { signal } from '../../compute/terminate.ts'
import { isAlive, markOf, type ProcessMark } from '../../runtime/process-mark.ts'
import { isInUse, readInstance } from '../../storage/data-directory.ts'
import { CommandError } from '../errors.ts'
import type { ProcessContext } from '../process-context.ts'
import { shellQuote } from '../quote.ts'
import { checkAccessible, holdsDirectory } from './directory-lock.ts'
import { listInstances } from './registry.ts'

/** Milliseconds between two looks at whether it has ended. */
const POLL_INTERVAL_MS = 20

/** Milliseconds that the kernel may take to end a process that is killed. */
const KILL_TIMEOUT_MS = 5_000

/** An instance that was ended. */
export interface StoppedInstance {
  data_dir: string
  pid: number
  /** Whether it had to be killed. */
  killed: boolean
}

/** How an instance is ended. */
export interface StopOptions {
  /** Milliseconds that it may take to end in order. */
  timeoutMs: number
  /** Kill it when they are over. */
  force: boolean
  /** Where the list of instances lies. */
  env: ProcessContext['env']
}

/**
 * Ends the instance of a data directory with SIGTERM and waits until it is gone. Its process is found by the lock it holds,
 * so that no other program that has its pid meanwhile is signalled.
 *
 * @throws CommandError where none runs, or it does not end in time
 */
export async function stopInstance(
  dataDir: string,
  { timeoutMs, force, env }: StopOptions,
): Promise<StoppedInstance> {
  checkAccessible(dataDir)
  const found = await findProcess(dataDir, timeoutMs, env)
  const { pid } = found
  signal(pid, 'SIGTERM')
  // One that was stopped with Ctrl-Z acts on it only when it runs again.
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

/** The process of a directory's instance. One that is just starting is waited for. */
async function findProcess(
  dataDir: string,
  timeoutMs: number,
  env: ProcessContext['env'],
): Promise<ProcessMark> {
  for (const deadline = performance.now() + timeoutMs; ; await Bun.sleep(POLL_INTERVAL_MS)) {
    // A directory that was removed under its berth says nothing any more: the list still does.
    const named = readInstance(dataDir) ?? listInstances(env).find(({ data_dir }) => data_dir === dataDir)
    // In this order: what holds the lock behind its mark is what the mark is of.
    const mark = named && markOf(named.pid)
    if (mark && holdsDirectory(mark.pid, dataDir)) return mark
    if (!isInUse(dataDir))
      throw new CommandError(`No berth runs on ${dataDir}. "berth list" shows those that run.`)
    if (performance.now() < deadline) continue
    throw new CommandError(
      `A berth runs on ${dataDir}, but its process cannot be seen from here: stop it where it was started, in another container or by another user.`,
    )
  }
}

async function waitForExit(mark: ProcessMark, withinMs: number): Promise<boolean> {
  for (const deadline = performance.now() + withinMs; isAlive(mark); await Bun.sleep(POLL_INTERVAL_MS)) {
    if (performance.now() > deadline) return false
  }
  return true
}
