/**
 * The data directory: its lock and its files. `database.ts` opens the database in it. `state.ts` says which files are the state, which
 * a reset removes and a snapshot copies. `cipher.ts` encrypts secrets, and `files.ts` writes, copies and removes files. These five are
 * the room's doors.
 *
 * To add a table, write the next numbered file of `migrations/` and list it in `migrate.ts`; a released one never changes. Describe the
 * table for queries in the `table.ts` of its noun in src/resources. `migrations/sessions/` is for the database of browser sessions alone.
 */

import { Database as Sqlite } from 'bun:sqlite'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { StartupError } from '../errors.ts'
import { codeOf, isBusy, isDiskFull, messageOf } from '../runtime/error-info.ts'
import { ifPresent, namesIn } from '../runtime/if-present.ts'
import { isAlive, markText, ownMark, parseMark } from '../system/process-mark.ts'
import { makePrivate, remove, removeTree, writePrivate } from './files.ts'
import { finishSwap } from './state.ts'

export { findAbandonedHeartbeats, type Heartbeat, NO_HEARTBEAT, openHeartbeat } from './heartbeat.ts'

/** The running instance's entry in the data directory, for the command line. */
interface InstanceFile {
  pid: number
  base_url: string
  version: string
  isolation: string
  /** Whether it is stopping. */
  ending?: true
}

/** The secrets a person or a script reads from the data directory. */
export interface CredentialsFile {
  /** Null if the first key was deleted. */
  api_key: string | null
  admin_token: string
}

/** Milliseconds in which a look at the lock is over, but on a very busy machine. */
const LOOK_MS = 100

/** Milliseconds for the same on a very busy machine, or for the lock's owner to write its instance file. */
const PATIENCE_MS = 2_000

/** Milliseconds that a start waits for the berth before to stop. One that takes longer waits for its commands to end. */
const ENDING_MS = 10_000

/** Milliseconds between two looks whether it has. */
const ENDING_POLL_MS = 20

/** The data directory, locked by this process until it is released. */
export interface DataDirectory {
  readonly path: string
  readonly database: string
  readCredentials(): CredentialsFile | null
  writeCredentials(credentials: CredentialsFile): void
  writeInstance(instance: InstanceFile): void
  /** Notes in the instance's entry that it is stopping, so that the next start waits for its end. */
  markEnding(): void
  /** Returns the version of the berth that wrote here last, or null if none is recorded. */
  readVersion(): string | null
  /** Records the version of the berth that writes here. */
  writeVersion(version: string): void
  /** Records the port of this start, for a later one. */
  writePort(port: number): void
  /** Returns the text of `master.key`, or null if there is no such file. */
  readMasterKey(): string | null
  writeMasterKey(text: string): void
  /** Gives the directory back; another berth may take it. */
  release(): void
  /** Gives the directory back after a start that failed. Removes it if this start created it: nobody has used it. */
  discard(): void
}

/**
 * Takes the data directory: creates it (mode 0700, ignored by git) and locks it.
 *
 * The lock is an open write transaction on a separate database. The kernel releases it when the process ends, in any
 * way, so no stale lock is left.
 *
 * @throws StartupError if the directory is not writable, or another berth uses it
 */
export function takeDataDirectory(path: string): DataDirectory {
  const { lock, created } = lockDirectory(path)
  const instanceFile = join(path, 'instance.json')
  const credentialsFile = join(path, 'credentials.json')
  const masterKeyFile = join(path, 'master.key')
  const versionFile = join(path, 'version')
  prepareDirectory(path, instanceFile, lock)
  return {
    path,
    database: join(path, 'berth.db'),
    readCredentials() {
      if (!existsSync(credentialsFile)) return null
      try {
        return JSON.parse(readFileSync(credentialsFile, 'utf8')) as CredentialsFile
      } catch {
        throw new StartupError(
          `The file ${credentialsFile} is not readable JSON. Restore it, or start anew with another --data directory.`,
        )
      }
    },
    writeCredentials: (credentials) => writePrivate(credentialsFile, toJson(credentials)),
    writeInstance: (instance) => writePrivate(instanceFile, toJson(instance)),
    markEnding() {
      const instance = readInstance(path)
      try {
        if (instance !== null) writePrivate(instanceFile, toJson({ ...instance, ending: true }))
      } catch (error) {
        // A start that comes before the end does not wait for it then.
        if (!isDiskFull(error)) throw error
      }
    },
    readVersion: () => ifPresent(() => readFileSync(versionFile, 'utf8').trim()) ?? null,
    writeVersion: (version) => writePrivate(versionFile, `${version}\n`),
    writePort(port) {
      if (readLastPort(path) !== port) writePrivate(join(path, PORT_FILE), `${port}\n`)
    },
    readMasterKey: () => (existsSync(masterKeyFile) ? readFileSync(masterKeyFile, 'utf8') : null),
    writeMasterKey: (text) => writePrivate(masterKeyFile, text),
    release() {
      remove(instanceFile)
      lock.close()
    },
    discard() {
      if (created === null) remove(instanceFile)
      else removeCreated(path, created)
      lock.close()
    },
  }
}

/** Resolves when a berth that is stopping has given a directory back; at once if none is, and at last after 10 seconds. */
export async function untilGivenBack(path: string): Promise<void> {
  for (const deadline = performance.now() + ENDING_MS; performance.now() < deadline; ) {
    const instance = readInstance(path)
    if (instance?.ending !== true || !isProcessAlive(instance) || !isInUse(path)) return
    await Bun.sleep(ENDING_POLL_MS)
  }
}

/** The name of the file with the port of the last start. */
const PORT_FILE = 'port'

/** Returns the port of the last start on this directory, or null if none is recorded. */
export function readLastPort(path: string): number | null {
  const text = ifPresent(() => readFileSync(join(path, PORT_FILE), 'utf8').trim()) ?? ''
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  return port > 0 && port < 65_536 ? port : null
}

/** Returns the entry of an instance in this directory, or null. The instance may have ended since. */
export function readInstance(path: string): InstanceFile | null {
  try {
    return JSON.parse(readFileSync(join(path, 'instance.json'), 'utf8')) as InstanceFile
  } catch {
    // There is none, or it is only half written.
    return null
  }
}

/**
 * Reports whether a berth uses this directory, even one in another container. A directory that is gone or has no lock
 * is not in use.
 */
export function isInUse(path: string): boolean {
  const file = join(path, 'lock')
  if (!existsSync(file)) return false
  let lock: Sqlite | undefined
  try {
    lock = new Sqlite(file, { readwrite: true, create: false })
    lock.run('BEGIN EXCLUSIVE')
    return false
  } catch {
    // Another process has the lock, or has just removed it.
    return existsSync(file)
  } finally {
    lock?.close()
  }
}

/** Removes a data directory, and the directories above it that were created for it, unless others use them too. */
function removeCreated(path: string, created: string): void {
  ifPresent(() => rmSync(path, { recursive: true, force: true }))
  try {
    for (let dir = path; dir !== created; ) {
      dir = dirname(dir)
      rmdirSync(dir)
    }
  } catch {
    // It is not empty.
  }
}

/** Creates and locks the directory; `created` is the topmost directory that did not exist, null if all did. */
function lockDirectory(path: string): { lock: Sqlite; created: string | null } {
  let lock: Sqlite | undefined
  try {
    const created = mkdirSync(path, { recursive: true, mode: 0o700 }) ?? null
    chmodSync(path, 0o700)
    const ignore = join(path, '.gitignore')
    if (!existsSync(ignore)) writeFileSync(ignore, '*\n')
    makePrivate(join(path, 'lock'))
    lock = new Sqlite(join(path, 'lock'))
    begin(lock, path)
    return { lock, created }
  } catch (error) {
    lock?.close()
    if (isBusy(error)) throw new StartupError(inUse(path))
    throw notWritable(path, error)
  }
}

/** Takes the lock. Another process that checks whether the directory is in use holds it for a moment. */
function begin(lock: Sqlite, path: string): void {
  lock.run(`PRAGMA busy_timeout = ${LOOK_MS}`)
  for (const deadline = performance.now() + PATIENCE_MS; ; ) {
    try {
      // The transaction writes nothing, so no file of its journal has to be made.
      lock.run('PRAGMA journal_mode = MEMORY')
      lock.run('BEGIN EXCLUSIVE')
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline || isProcessAlive(readInstance(path))) throw error
    }
  }
}

/** Reports whether a process with the pid of this entry exists. */
function isProcessAlive(instance: InstanceFile | null): boolean {
  if (instance === null) return false
  try {
    process.kill(instance.pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/** Leaves the directory as a start expects it. @throws StartupError if that cannot be done */
function prepareDirectory(path: string, instanceFile: string, lock: Sqlite): void {
  try {
    remove(instanceFile)
    // Earlier versions of berth kept sessions there.
    remove(join(path, 'sessions.json'))
    finishSwap(path)
  } catch (error) {
    lock.close()
    throw notWritable(path, error)
  }
}

function notWritable(path: string, error: unknown): StartupError {
  if (ifPresent(() => statSync(path).isFile()))
    return new StartupError(`${path} is a file, not a directory. Choose a directory with --data.`)
  const cause = messageOf(error)
  return new StartupError(
    `The data directory ${path} cannot be written: ${cause}. Fix its permissions or free its disk, or choose another with --data.`,
    { cause: error },
  )
}

function inUse(path: string): string {
  const instance = readInstance(path)
  const where = instance ? ` at ${instance.base_url} (pid ${instance.pid})` : ''
  if (instance?.ending)
    return `The data directory ${path} is in use: the berth that ran on it${where} is still stopping. Start again when it has ended ("berth stop --force" kills it), or choose another directory with --data.`
  return `The data directory ${path} is in use: a berth runs on it${where}. Use that one, stop it, or choose another directory with --data.`
}

const toJson = (content: object): string => `${JSON.stringify(content, null, 2)}\n`

const PREFIX = 'berth-ephemeral-'

const TRIAL_PREFIX = 'berth-doctor-'

/** The prefixes of berth's temporary directories. */
const PREFIXES = [PREFIX, TRIAL_PREFIX, 'berth-websocket-', 'berth-report-', 'berth-engine-'] as const

/** Milliseconds for which a directory without a lock and without a known process may be about to be used. */
const YOUNG_MS = 60_000

/** A data directory for one run. */
export interface EphemeralDirectory {
  readonly path: string
  /** Removes it with all it holds. Calling it again is harmless. */
  remove(): void
}

/** Reports whether a directory is one in which an examination of the machine tries things. */
export const isTrial = (path: string): boolean => basename(path).startsWith(TRIAL_PREFIX)

/** Creates a data directory that is removed after the run. */
export function makeEphemeral(temporaryDir: string): EphemeralDirectory {
  const path = realpathSync(makeTemporary(temporaryDir, PREFIX))
  return { path, remove: () => removeTemporary(path) }
}

/**
 * Creates an empty directory for this process. Its name identifies the process, so it is recognized as abandoned if
 * the process is killed.
 *
 * @throws StartupError if it cannot be created
 */
export function makeTemporary(temporaryDir: string, prefix: (typeof PREFIXES)[number]): string {
  const mark = ownMark()
  return makeDirectory(temporaryDir, mark === null ? prefix : `${prefix}${markText(mark)}-`)
}

/**
 * Creates an empty directory with a new name.
 *
 * @throws StartupError if it cannot be created
 */
export function makeDirectory(temporaryDir: string, prefix: string): string {
  try {
    return mkdtempSync(join(temporaryDir, prefix))
  } catch (error) {
    const cause = messageOf(error)
    throw new StartupError(
      `No temporary directory can be made: ${cause}. Set TMPDIR to a directory that can be written.`,
    )
  }
}

/**
 * Returns the temporary directories of this user that no berth uses any more.
 *
 * @param now milliseconds since 1970, by the machine
 */
export function findAbandoned(temporaryDir: string, now: number): string[] {
  const user = process.getuid?.()
  return namesIn(temporaryDir).flatMap((name) => {
    const prefix = PREFIXES.find((one) => name.startsWith(one))
    if (prefix === undefined) return []
    const path = join(temporaryDir, name)
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats?.uid !== user || !stats?.isDirectory()) return []
    return isAbandoned(path, name.slice(prefix.length), now - stats.mtimeMs) ? [path] : []
  })
}

/** @param suffix of its name, behind the prefix */
function isAbandoned(path: string, suffix: string, ageMs: number): boolean {
  const mark = parseMark(suffix.split('-')[0] ?? '')
  const alive = mark && isAlive(mark)
  if (alive !== null) return !alive
  // Made in another container, or by a berth that did not know its mark.
  if (ageMs < YOUNG_MS) return false
  return !isInUse(path)
}

/** Removes a temporary directory as far as possible: ending processes may still write into it. */
export function removeTemporary(path: string): void {
  try {
    removeTree(path)
  } catch {
    // The next ephemeral start tries again.
  }
}
