import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { ReadyInfo } from '../../instance/start.ts'
import { machineNow } from '../../runtime/clock.ts'
import { isInUse, readInstance } from '../../storage/data-directory.ts'
import { writePrivate } from '../../storage/private-file.ts'
import { CommandError } from '../errors.ts'
import type { ProcessContext } from '../process-context.ts'
import { userDirectory } from '../user-directory.ts'
import { directoriesHeldBy, holdsDirectory } from './directory-lock.ts'

/** Which command an instance was started with. */
export type StartedBy = 'serve' | 'serve --detach' | 'run'

/** An instance as `berth list` shows it; nothing secret. */
export interface ListedInstance {
  data_dir: string
  base_url: string
  pid: number
  version: string
  /** ISO 8601, by the machine's clock. */
  started_at: string
  started_by: StartedBy
}

/**
 * The directory in which every instance of this user says where it runs: `$XDG_STATE_HOME/berth/instances`, else
 * `~/.local/state/berth/instances` (XDG Base Directory Specification, where a relative path counts as none). Null for a
 * user without a home, as in a container that runs under a number that nobody has.
 */
function registryDirectory(env: ProcessContext['env']): string | null {
  const directory = userDirectory(env, 'XDG_STATE_HOME', '.local/state')
  return directory && join(directory, 'berth/instances')
}

/** The files of all entries. @throws CommandError where the directory may not be read */
function entryFiles(env: ProcessContext['env']): string[] {
  const directory = registryDirectory(env)
  if (directory === null) return []
  try {
    return readdirSync(directory).map((name) => join(directory, name))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return []
    throw new CommandError(
      `The list of instances cannot be read: ${message}. Mend the directory's permissions, or name another with XDG_STATE_HOME.`,
    )
  }
}

/**
 * Adds an instance of this process. One that cannot be added, for want of a home that can be written, runs all the same.
 *
 * @returns takes it out again
 */
export function registerInstance(
  ready: ReadyInfo,
  startedBy: StartedBy,
  env: ProcessContext['env'],
): () => void {
  const { data_dir, base_url, pid, version } = ready
  const startedAt = new Date(machineNow()).toISOString()
  const entry: ListedInstance = {
    data_dir,
    base_url,
    pid,
    version,
    started_at: startedAt,
    started_by: startedBy,
  }
  const directory = registryDirectory(env)
  if (directory === null) return () => {}
  const file = join(directory, nameOf(data_dir))
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    writePrivate(file, `${JSON.stringify(entry, null, 2)}\n`)
    // Those of berths that were killed: nobody may ever ask for the list.
    for (const stale of entryFiles(env)) {
      const other = readEntry(stale)
      if (other && !existsSync(`/proc/${other.pid}`)) readOrRemoveStale(stale)
    }
  } catch {}
  return () => removeEntry(file)
}

/** Removes an entry; where that cannot be done it is known for stale all the same. */
export function removeEntry(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {}
}

/** The instances of this user that run, oldest first. What killed ones have left is removed. */
export function listInstances(env: ProcessContext['env']): ListedInstance[] {
  const found = entryFiles(env).flatMap((file) => readOrRemoveStale(file) ?? [])
  return found.sort((a, b) => (a.started_at < b.started_at ? -1 : 1))
}

/** The data directories of all entries, those of instances that do not run any more too. */
export function registeredDirectories(env: ProcessContext['env']): string[] {
  return entryFiles(env).flatMap((file) => readEntry(file)?.data_dir ?? [])
}

/** The entries of instances that do not run any more. */
export function staleEntries(env: ProcessContext['env']): { file: string; instance: ListedInstance }[] {
  return entryFiles(env).flatMap((file) => {
    const instance = readEntry(file)
    return instance && findRunning(instance) === null ? [{ file, instance }] : []
  })
}

/** Returns the instance of an entry as it is now, also if its directory was moved; null if it does not run any more. */
function findRunning(entry: ListedInstance): ListedInstance | null {
  const { pid, data_dir, base_url } = entry
  if (holdsDirectory(pid, data_dir) || isInUse(data_dir)) return entry
  const moved = directoriesHeldBy(pid).find((directory) => {
    const instance = readInstance(directory)
    return instance?.pid === pid && instance.base_url === base_url
  })
  return moved === undefined ? null : { ...entry, data_dir: moved }
}

function readOrRemoveStale(file: string): ListedInstance | null {
  const entry = readEntry(file)
  const now = entry && findRunning(entry)
  if (entry !== null && now === null) removeEntry(file)
  return now
}

/** Null for a file that is none of ours, or was removed meanwhile. */
function readEntry(file: string): ListedInstance | null {
  if (!file.endsWith('.json')) return null
  try {
    const entry = JSON.parse(readFileSync(file, 'utf8')) as Partial<ListedInstance> | null
    return typeof entry?.data_dir === 'string' && typeof entry.pid === 'number'
      ? (entry as ListedInstance)
      : null
  } catch {
    return null
  }
}

/** One instance a data directory, one file an instance. */
const nameOf = (dataDir: string): string =>
  `${new Bun.CryptoHasher('sha256').update(dataDir).digest('hex').slice(0, 24)}.json`
