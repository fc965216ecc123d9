import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { ReadyInfo } from '../../instance/start.ts'
import { machineNow } from '../../runtime/clock.ts'
import { codeOf, messageOf } from '../../runtime/error-info.ts'
import { isInUse, readInstance } from '../../storage/data-directory.ts'
import { writePrivate } from '../../storage/files.ts'
import { processes } from '../../system/processes.ts'
import { CommandError } from '../errors.ts'
import type { ProcessContext } from '../process-context.ts'
import { userDirectory } from '../user-directory.ts'
import { directoriesHeldBy, holdsDirectory } from './directory-lock.ts'

/** The command that started an instance. */
export type StartedBy = 'serve' | 'serve --detach' | 'run' | 'up'

/** An instance as listed by `berth list`, without secrets. */
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
 * Returns the directory with an entry for every instance of this user: `$XDG_STATE_HOME/berth/instances`, else
 * `~/.local/state/berth/instances` (XDG Base Directory Specification, which ignores relative paths). Returns null for
 * a user without a home, as in a container with an unknown uid.
 */
function registryDirectory(env: ProcessContext['env']): string | null {
  const directory = userDirectory(env, 'XDG_STATE_HOME', '.local/state')
  return directory && join(directory, 'berth/instances')
}

/**
 * Returns the files of all entries.
 *
 * @throws CommandError if the directory cannot be read
 */
function entryFiles(env: ProcessContext['env']): string[] {
  const directory = registryDirectory(env)
  if (directory === null) return []
  try {
    return readdirSync(directory).map((name) => join(directory, name))
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return []
    throw new CommandError(
      `The list of instances cannot be read: ${messageOf(error)}. Fix the directory's permissions, or name another with XDG_STATE_HOME.`,
    )
  }
}

/**
 * Adds an instance of this process to the registry. If there is no writable home, the instance runs without an entry.
 *
 * @returns a function that removes the entry
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
    // Entries of killed instances: the user may never run `berth list`.
    for (const stale of entryFiles(env)) {
      const other = readEntry(stale)
      if (other && processes.owner(other.pid) === null) readOrRemoveStale(stale)
    }
  } catch {
    // Only `berth list` misses the instance: its directory says that it runs.
  }
  return () => unregisterFile(file)
}

/** Removes an entry. One that cannot be removed is still recognized as stale. */
export function unregisterFile(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // It is stale then.
  }
}

/** Lists the running instances of this user, oldest first. Removes stale entries. */
export function listInstances(env: ProcessContext['env']): ListedInstance[] {
  const found = entryFiles(env).flatMap((file) => readOrRemoveStale(file) ?? [])
  return found.sort((a, b) => (a.started_at < b.started_at ? -1 : 1))
}

/** Returns the data directories of all entries, including stale ones. */
export function registeredDirectories(env: ProcessContext['env']): string[] {
  return entryFiles(env).flatMap((file) => readEntry(file)?.data_dir ?? [])
}

/** Returns the entries of instances that no longer run. */
export function staleEntries(env: ProcessContext['env']): { file: string; instance: ListedInstance }[] {
  return entryFiles(env).flatMap((file) => {
    const instance = readEntry(file)
    return instance && findRunning(instance) === null ? [{ file, instance }] : []
  })
}

/** Returns the running instance of an entry, also if its directory was moved; null if it no longer runs. */
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
  if (entry !== null && now === null) unregisterFile(file)
  return now
}

/** Returns the entry in a file; null if the file is not an entry, or was removed meanwhile. */
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

/** Returns the file name of a data directory's entry. */
const nameOf = (dataDir: string): string =>
  `${new Bun.CryptoHasher('sha256').update(dataDir).digest('hex').slice(0, 24)}.json`
