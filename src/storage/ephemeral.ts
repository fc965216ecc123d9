import { existsSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isInUse } from './folder.ts'

const PREFIX = 'berth-ephemeral-'

/** A folder without a lock that is younger may be about to be taken. */
const YOUNG_MS = 60_000

/** A data folder for one run. */
export interface EphemeralFolder {
  readonly path: string
  /** Removes it with all it holds. Calling it again is harmless. */
  remove(): void
}

/** Makes a data folder that goes with the run. */
export function makeEphemeral(temporaryDir: string): EphemeralFolder {
  const path = realpathSync(mkdtempSync(join(temporaryDir, PREFIX)))
  return { path, remove: () => removeTree(path) }
}

/** Removes the ephemeral folders of this user whose berth was killed and could not. */
export function removeAbandoned(temporaryDir: string, now: number): void {
  const user = process.getuid?.()
  for (const name of readdirSync(temporaryDir)) {
    if (!name.startsWith(PREFIX)) continue
    const path = join(temporaryDir, name)
    const { uid, mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? {}
    if (uid !== user || mtimeMs === undefined || now - mtimeMs < YOUNG_MS) continue
    if (existsSync(join(path, 'lock')) && isInUse(path)) continue
    removeTree(path)
  }
}

/** Removes as much as can be removed: processes that are just ending may still write. */
function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 3 })
  } catch {
    // The next ephemeral start tries again.
  }
}
