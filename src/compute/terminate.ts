/** Milliseconds between SIGTERM and SIGKILL. */
export const GRACE_MS = 1000

/** Milliseconds after which processes that survive SIGKILL (in an uninterruptible wait) are given up on. */
const GIVE_UP_MS = 5000

/** Most rounds of stopping processes that started meanwhile. */
const STOP_ROUNDS = 50

/** Sends a signal; one that has ended already is no fault. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // Ended meanwhile, or not ours.
  }
}

/**
 * Stops (SIGSTOP) processes, round by round until no new one appears: one that is not stopped yet may start others.
 *
 * @param find lists the processes to stop, including those already stopped
 * @returns the pids of the stopped ones
 */
export function stopAll(find: () => number[]): Set<number> {
  const stopped = new Set<number>()
  for (let round = 0; round < STOP_ROUNDS; round += 1) {
    const fresh = find().filter((pid) => !stopped.has(pid))
    if (fresh.length === 0) break
    for (const pid of fresh) {
      signal(pid, 'SIGSTOP')
      stopped.add(pid)
    }
  }
  return stopped
}

/**
 * Ends processes: SIGTERM, a grace period, then `killAll`. `find` lists the remaining ones.
 *
 * @param graceEnds the end of the grace by `performance.now()`; called repeatedly, so it may change meanwhile
 */
export async function terminate(find: () => number[], graceEnds: () => number = endOfGrace()): Promise<void> {
  for (const pid of find()) {
    signal(pid, 'SIGTERM')
    // A stopped process acts on SIGTERM only when it runs again.
    signal(pid, 'SIGCONT')
  }
  for (let pause = 1; performance.now() < graceEnds(); pause = Math.min(pause * 2, 50)) {
    if (find().length === 0) return
    await Bun.sleep(pause)
  }
  await killAll(find)
}

function endOfGrace(): () => number {
  const end = performance.now() + GRACE_MS
  return () => end
}

/**
 * Ends processes at once. Stops them before killing them, round by round until no new one appears: a fork bomb that
 * is killed one by one grows back as fast. If `find` returns an array rather than a promise, all are stopped before
 * the first wait.
 */
export async function killAll(find: () => number[] | Promise<number[]>): Promise<void> {
  const deadline = performance.now() + GIVE_UP_MS
  const stopped = new Set<number>()
  for (let round = 0; performance.now() < deadline; round += 1) {
    const looked = find()
    const found = Array.isArray(looked) ? looked : await looked
    if (found.length === 0) return
    const fresh = found.filter((pid) => !stopped.has(pid))
    if (fresh.length > 0 && round < STOP_ROUNDS) {
      for (const pid of fresh) {
        signal(pid, 'SIGSTOP')
        stopped.add(pid)
      }
      continue
    }
    for (const pid of found) signal(pid, 'SIGKILL')
    await Bun.sleep(1)
  }
}
