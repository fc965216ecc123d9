import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ifPresent, readTextOrNull } from '../../runtime/if-present.ts'
import { processesOf } from '../limits/groups.ts'
import { findDescendants, readMarker, rememberProcesses } from '../processes.ts'

/** What leads to every process of a sandbox, so no other process has to be looked at. */
interface Traces {
  /** Processes whose end ends all others of the sandbox: that of bwrap, and the first one of the PID namespace. */
  pids: readonly number[]
  /** Absolute paths of the control groups that all its processes are in. */
  groups: readonly string[]
}

/** The sandboxes of earlier berths by their server's id; null as the traces of one that is to be searched for. */
export type LeftSandboxes = ReadonlyMap<string, Traces | null>

/** Returns the processes that are in any of these control groups. */
export const processesIn = (groups: readonly string[]): number[] => [...new Set(groups.flatMap(processesOf))]

/**
 * Notes in the data directory which sandboxes run, for the next start after berth was killed. A file of `running/` is
 * there from before a sandbox's first process until its last one has ended. It is empty until the sandbox is ready, and
 * stays empty if nothing leads to all of its processes.
 */
export class RunningSandboxes {
  readonly #dir: string
  /** The servers whose sandboxes this process has started. */
  readonly #own = new Set<string>()

  /** @param dataDir absolute path of the data directory */
  constructor(dataDir: string) {
    this.#dir = join(dataDir, 'running')
  }

  /** Notes that a sandbox is about to start. */
  begin(serverId: string): void {
    this.#own.add(serverId)
    try {
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 })
      writeFileSync(join(this.#dir, serverId), '', { mode: 0o600 })
    } catch {
      // As on a full disk. Without the directory the next start looks at all processes.
      rmSync(this.#dir, { recursive: true, force: true })
    }
  }

  /** Notes what leads to a sandbox that is ready. */
  ready(serverId: string, traces: Traces): void {
    const path = join(this.#dir, serverId)
    try {
      if (existsSync(path)) writeFileSync(path, JSON.stringify(traces))
    } catch {
      // What is there says that the sandbox is to be searched for.
    }
  }

  /** Notes that nothing of a sandbox runs. */
  end(serverId: string): void {
    rmSync(join(this.#dir, serverId), { force: true })
    this.#own.delete(serverId)
  }

  /**
   * Returns the sandboxes that earlier berths have noted. Returns null if there are no notes, since a version of berth
   * without them may have been here.
   */
  left(): LeftSandboxes | null {
    const names = ifPresent(() => readdirSync(this.#dir))?.filter((name) => !this.#own.has(name))
    return names === undefined ? null : new Map(names.map((name) => [name, this.#read(name)]))
  }

  #read(serverId: string): Traces | null {
    try {
      const { pids, groups } = JSON.parse(readTextOrNull(join(this.#dir, serverId)) ?? '') as Traces
      return { pids: pids.filter(Number.isSafeInteger), groups: groups.map(String) }
    } catch {
      // Not ready, or cut off as it was written.
      return null
    }
  }
}

/**
 * Returns a function that returns what still runs of a sandbox that an earlier berth left.
 *
 * The data directory may be a copy of another one, whose sandboxes run: a number counts only if its process names the
 * server of this data directory, and a group only if it is that server's.
 *
 * @param serverMarker the first 24 hex digits of its processes' markers
 * @param group the name of its control group, behind the directories in which groups can be made
 */
export function findLeft({ pids, groups }: Traces, serverMarker: string, group: string): () => number[] {
  const first = pids.filter((pid) => readMarker(pid)?.startsWith(serverMarker))
  const alive = rememberProcesses(first.flatMap((pid) => [pid, ...findDescendants(pid)]))
  const own = groups.filter((dir) => dir.endsWith(`/${group}`))
  return () => [...new Set([...alive(), ...processesIn(own)])]
}
