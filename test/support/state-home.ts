import { afterAll } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Where instances under test say that they run, in place of the home of whoever runs the tests. Loaded before all tests
 * (bunfig.toml), so that it goes when the last of them is done.
 */
export const stateHome = mkdtempSync(join(tmpdir(), 'berth-state-'))

process.env.XDG_STATE_HOME = stateHome
afterAll(() => rmSync(stateHome, { recursive: true, force: true }))
