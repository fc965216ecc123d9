import { lstatSync, mkdtempSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { StartupError } from '../errors.ts'
import { messageOf } from '../runtime/error-info.ts'
import { namesIn } from '../runtime/names-in.ts'
import { isAlive, markText, ownMark, parseMark } from '../runtime/process-mark.ts'
import { isInUse } from './data-directory.ts'
import { removeTree } from './remove-tree.ts'

const PREFIX = 'berth-ephemeral-'

const TRIAL_PREFIX = 'berth-doctor-'

/** The prefixes of berth's temporary directories. */
const PREFIXES = [PREFIX, TRIAL_PREFIX, 'berth-websocket-'] as const

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
