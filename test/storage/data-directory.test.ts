import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { takeDataDirectory } from '../../src/storage/data-directory.ts'

/** Has the lock for a moment, as a command does on a busy machine that looks whether a berth runs. */
const LOOK = `
const { Database } = require('bun:sqlite')
const lock = new Database(process.argv[1])
lock.run('BEGIN EXCLUSIVE')
require('fs').writeSync(1, '.')
Bun.sleepSync(400)
lock.close()
`

test('a start is not refused because a command is just looking whether a berth runs', async () => {
  const path = mkdtempSync(join(tmpdir(), 'berth-folder-'))
  try {
    takeDataDirectory(path).release()
    const looking = Bun.spawn([process.execPath, '-e', LOOK, join(path, 'lock')], { stdout: 'pipe' })
    await looking.stdout.getReader().read()
    takeDataDirectory(path).release()
    expect(await looking.exited).toBe(0)
    const held = takeDataDirectory(path)
    expect(() => takeDataDirectory(path)).toThrow('is in use')
    held.release()
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
})
