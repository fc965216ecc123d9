import { afterAll, beforeAll, setDefaultTimeout } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Where instances under test say that they run, in place of the home of the person who runs the tests. Loaded before all tests
 * (bunfig.toml), so that it goes when the last of them is done. A parallel runner loads it once for many files, and
 * runs what is below before and after each of them.
 */
export const stateHome = mkdtempSync(join(tmpdir(), 'berth-state-'))

/** The home of the commands that are tried: shells keep their histories there, and some programs their settings. */
export const home = join(stateHome, 'home')

/** Makes the home if the end of an earlier file has removed it. */
export function makeHome(): void {
  mkdirSync(home, { recursive: true, mode: 0o700 })
}

process.env.XDG_STATE_HOME = stateHome
// For "bun test FILE", whose five seconds are too few. Bun has no setting for it, and takes this for one file only.
setDefaultTimeout(120_000)
beforeAll(makeHome)
afterAll(() => rmSync(stateHome, { recursive: true, force: true }))
