import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LocalWorkspace } from '../../src/compute/local/workspace.ts'
import type { WorkspaceWatch } from '../../src/compute/workspace.ts'
import { until } from '../support/processes.ts'

let root: string
let watch: WorkspaceWatch | undefined
let told: string[]
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'berth-watch-'))
  mkdirSync(join(root, 'app/src'), { recursive: true })
  told = []
})
afterEach(async () => {
  await watch?.close()
  watch = undefined
  rmSync(root, { recursive: true, force: true })
})

const begin = async () => {
  watch = await new LocalWorkspace(root).watch('app', {
    ignored: (path) => path.split('/').includes('node_modules'),
    onChange: (path) => told.push(path),
  })
}

const heard = (path: string) => until(() => told.includes(path), `a word of ${path}, after ${told}`)

test('tells of files that are written, moved into place and removed, in new folders too', async () => {
  writeFileSync(join(root, 'app/there.ts'), '1')
  await begin()
  writeFileSync(join(root, 'app/there.ts'), '2')
  await heard('there.ts')
  mkdirSync(join(root, 'app/src/deep/er'), { recursive: true })
  writeFileSync(join(root, 'app/src/deep/er/new.ts'), '1')
  await heard('src/deep/er/new.ts')
  writeFileSync(join(root, 'outside.tmp'), '3')
  renameSync(join(root, 'outside.tmp'), join(root, 'app/src/moved.ts'))
  await heard('src/moved.ts')
  told = []
  rmSync(join(root, 'app/there.ts'))
  await heard('there.ts')
})

test('passes over what is ignored, and what links lead to', async () => {
  mkdirSync(join(root, 'app/node_modules/x'), { recursive: true })
  mkdirSync(join(root, 'elsewhere'))
  symlinkSync(join(root, 'elsewhere'), join(root, 'app/link'))
  await begin()
  writeFileSync(join(root, 'app/node_modules/x/a.js'), '1')
  writeFileSync(join(root, 'elsewhere/b.ts'), '1')
  writeFileSync(join(root, 'app/last.ts'), '1')
  await heard('last.ts')
  expect(told.filter((path) => path !== 'last.ts')).toEqual([])
})

test('a folder that is not there, or a link in its place, is refused or watched as itself', async () => {
  const workspace = new LocalWorkspace(root)
  const options = { ignored: () => false, onChange: (path: string) => void told.push(path) }
  await expect(workspace.watch('nowhere', options)).rejects.toThrow('does not exist')
  mkdirSync(join(root, '../berth-watch-out'), { recursive: true })
  try {
    symlinkSync(join(root, '../berth-watch-out'), join(root, 'out'))
    await expect(workspace.watch('out', options)).rejects.toThrow()
  } finally {
    rmSync(join(root, '../berth-watch-out'), { recursive: true, force: true })
  }
})
