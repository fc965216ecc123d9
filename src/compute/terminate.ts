/** Milliseconds between SIGTERM and SIGKILL. */
export const GRACE_MS = 1000

/** Milliseconds between SIGHUP and SIGTERM. */
export const HANG_UP_MS = 500

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
  await request(find, 'SIGTERM', graceEnds)
  await killAll(find)
}

/**
 * Asks processes by a signal to end. Resolves when none is left, or at the end of the grace.
 *
 * @param graceEnds as with `terminate`
 */
export async function request(
  find: () => number[],
  name: 'SIGTERM' | 'SIGHUP',
  graceEnds: () => number,
): Promise<void> {
  for (const pid of find()) {
    signal(pid, name)
    // A stopped process acts on it only when it runs again.
    signal(pid, 'SIGCONT')
  }
  for (let pause = 1; performance.now() < graceEnds(); pause = Math.min(pause * 2, 50)) {
    if (find().length === 0) return
    await Bun.sleep(pause)
  }
}

/** Returns a grace that ends in `ms` milliseconds, for `terminate` and `request`. */
export function endOfGrace(ms = GRACE_MS): () => number {
  const end = performance.now() + ms
  return () => end
}

/**
 * Ends processes at once. Stops them before killing them, round by round until no new one appears: a fork bomb that
 * is killed one by one grows back as fast. If `find` returns an array rather than a promise, all are stopped before
 * the first wait. Resolves to false if some are left that do not end.
 */
export async function killAll(find: () => number[] | Promise<number[]>): Promise<boolean> {
  // Counted from the first SIGKILL: on a busy machine the search alone may take seconds.
  let givesUpAt = Number.POSITIVE_INFINITY
  const stopped = new Set<number>()
  for (let round = 0; performance.now() < givesUpAt; round += 1) {
    const looked = find()
    const found = Array.isArray(looked) ? looked : await looked
    if (found.length === 0) return true
    const fresh = found.filter((pid) => !stopped.has(pid))
    if (fresh.length > 0 && round < STOP_ROUNDS) {
      for (const pid of fresh) {
        signal(pid, 'SIGSTOP')
        stopped.add(pid)
      }
      continue
    }
    for (const pid of found) signal(pid, 'SIGKILL')
    givesUpAt = Math.min(givesUpAt, performance.now() + GIVE_UP_MS)
    await Bun.sleep(1)
  }
  return false
}

/** Kills the processes that `find` returns now, and none that start later. Resolves when they are gone. */
export async function killPresent(find: () => number[]): Promise<void> {
  const doomed = new Set<number>()
  let isComplete = false
  const ended = killAll(() => find().filter((pid) => (isComplete ? doomed : doomed.add(pid)).has(pid)))
  // All have been stopped before the first wait; what starts from now on is not among them.
  isComplete = true
  await ended
}
