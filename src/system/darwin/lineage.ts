import type { ProcessInfo } from '../system.ts'

/** Most processes that have ended and are remembered, because what descends from them may live. @bound program */
const MAX_REMEMBERED = 20_000

/** The pid of the process that adopts orphans. */
export const LAUNCHD = 1

/** Where a process comes from. */
export interface Descent {
  /** Numbers that no other process has: its own, and that of the process that has started it; null if they are not shown. */
  readonly identity: { readonly own: bigint; readonly parent: bigint } | null
}

/** A process that was seen. */
interface Seen {
  readonly pid: number
  readonly parent: bigint
}

/**
 * Finds ancestors of orphans, which launchd adopts: macOS has no way to adopt them instead (PR_SET_CHILD_SUBREAPER of
 * Linux). A process keeps the number of the one that has started it, so descent is known as long as each one between was
 * seen once. One that starts another and ends before anybody looks is missed, unless the orphan has stayed in the session of
 * a process that was seen.
 */
export class Lineage {
  /** By their own numbers, the oldest first. */
  readonly #seen = new Map<bigint, Seen>()

  /** Notes processes, and returns them with the nearest living ancestor of orphans as their parent. */
  adopt(found: readonly (ProcessInfo & Descent)[]): ProcessInfo[] {
    const living = new Map<bigint, number>()
    for (const { pid, identity } of found) {
      if (identity === null) continue
      living.set(identity.own, pid)
      this.#seen.delete(identity.own)
      this.#seen.set(identity.own, { pid, parent: identity.parent })
    }
    for (const own of this.#seen.keys()) {
      if (this.#seen.size <= MAX_REMEMBERED) break
      this.#seen.delete(own)
    }
    return found.map(({ identity, ...info }) =>
      info.parent === LAUNCHD && identity !== null
        ? { ...info, parent: this.#ancestorOf(identity, info, living) ?? info.parent }
        : info,
    )
  }

  #ancestorOf(
    { own, parent }: { own: bigint; parent: bigint },
    { pid, session }: ProcessInfo,
    living: ReadonlyMap<bigint, number>,
  ): number | null {
    const above = this.#nearest(parent, living)
    if (above !== null && above !== LAUNCHD) return above
    if (session === pid) return null
    // The session's number is not given to another process while one is in it.
    for (const [leader, seen] of this.#seen) {
      if (seen.pid !== session || leader === own) continue
      return living.get(leader) ?? this.#nearest(seen.parent, living)
    }
    return null
  }

  /** Returns the first living process among one and its ancestors; null if they were not all seen. */
  #nearest(from: bigint, living: ReadonlyMap<bigint, number>): number | null {
    for (
      let next: bigint | undefined = from, steps = 0;
      next !== undefined && steps < MAX_REMEMBERED;
      steps += 1
    ) {
      const pid = living.get(next)
      if (pid !== undefined) return pid
      next = this.#seen.get(next)?.parent
    }
    return null
  }
}
