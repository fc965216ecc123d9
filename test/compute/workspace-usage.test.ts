import { expect, test } from 'bun:test'
import {
  closeSync,
  constants,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { temporaryName } from '../../src/compute/local/temporary-file.ts'
import { Box, WAYS } from './workspace-fixture.ts'

const LINUX = process.platform === 'linux'
if (!LINUX) console.error('SKIP: trees deeper than the longest path can be reached on Linux only')

/** What `du` counts below a folder, in bytes, the folder itself left out. */
function diskUsage(folder: string): number {
  const lines = Bun.spawnSync(['sh', '-c', 'du -s -B1 "$0"; du -d0 -S -B1 "$0/.empty"', folder])
    .stdout.toString()
    .split('\n')
  const [all, empty] = lines.map((line) => Number(line.split('\t')[0]))
  return (all ?? Number.NaN) - (empty ?? Number.NaN)
}

/**
 * Makes folders named `d`, each in the one before, from descriptor to descriptor, for no path is that long. Every
 * 50th also holds a file in a second folder, so that walks come back and find their way.
 */
function makeDeepTree(top: string, depth: number): void {
  let folder = openSync(top, constants.O_DIRECTORY)
  for (let level = 0; level < depth; level += 1) {
    const here = `/proc/self/fd/${folder}`
    mkdirSync(`${here}/d`)
    if (level % 50 === 0) {
      mkdirSync(`${here}/e`)
      writeFileSync(`${here}/e/file`, 'x')
    }
    const next = openSync(`${here}/d`, constants.O_DIRECTORY)
    closeSync(folder)
    folder = next
  }
  closeSync(folder)
}

test.skipIf(!LINUX).each(WAYS)('%s: usage is what du counts', async (kind) => {
  await using box = await Box.open(kind)
  expect(await box.workspace.usage()).toBe(0)
  await box.write('a/b/file', 'x'.repeat(100_000))
  await box.write('node_modules/m/index.js', 'x')
  await box.write('.git/HEAD', 'x')
  symlinkSync('/usr', box.at('a/link'))
  symlinkSync('x'.repeat(200), box.at('a/long-link'))
  // `diskUsage` subtracts one folder of the size of the workspace's own.
  mkdirSync(box.at('.empty'))
  expect(await box.workspace.usage()).toBe(diskUsage(box.root))
})

test.each(WAYS)('%s: a file with many names counts once, a sparse file what it occupies', async (kind) => {
  await using box = await Box.open(kind)
  await box.write('one', 'x'.repeat(1_000_000))
  const before = await box.workspace.usage()
  for (let n = 0; n < 10; n += 1) linkSync(box.at('one'), box.at(`more${n}`))
  const sparse = openSync(box.at('sparse'), 'w')
  ftruncateSync(sparse, 50_000_000_000)
  closeSync(sparse)
  expect(await box.workspace.usage()).toBe(before)
  expect(await box.workspace.stat('sparse')).toEqual({ kind: 'file', size: 50_000_000_000 })
})

test('what a killed berth was writing is not listed and goes with the next count', async () => {
  await using box = await Box.open()
  await box.write('d/file', 'x')
  const ours = temporaryName()
  for (const name of ['.berth-0abc-0123456789abcdef.tmp', ours, '.berth-mine.tmp', 'x.tmp'])
    writeFileSync(box.at(`d/${name}`), 'x')
  mkdirSync(box.at('.berth-0abd-0123456789abcdef.tmp/tree'), { recursive: true })
  writeFileSync(box.at('.berth-0abd-0123456789abcdef.tmp/tree/file'), 'x')
  expect(await box.workspace.list({ all: false })).toEqual(['d/.berth-mine.tmp', 'd/file', 'd/x.tmp'])
  await box.workspace.usage()
  expect(readdirSync(box.at('d')).sort()).toEqual([ours, '.berth-mine.tmp', 'file', 'x.tmp'].sort())
  expect(readdirSync(box.root)).toEqual(['d'])
})

test.skipIf(!LINUX)(
  'a tree of 2,000 levels is listed, counted and removed with few descriptors',
  async () => {
    await using box = await Box.open()
    makeDeepTree(box.root, 2000)
    const descriptors = () => readdirSync('/proc/self/fd').length
    const before = descriptors()
    let most = 0
    const watch = setInterval(() => {
      most = Math.max(most, descriptors())
    }, 1)
    const files = await box.workspace.list({ all: true })
    expect(files.length).toBe(40)
    expect(files[0]).toBe(`${'d/'.repeat(1950)}e/file`)
    expect(await box.workspace.usage()).toBe(box.blocks())
    await box.workspace.remove('d')
    clearInterval(watch)
    expect(await box.workspace.list({ all: true })).toEqual(['e/file'])
    expect(most - before).toBeGreaterThan(10)
    expect(most - before).toBeLessThan(100)
  },
  120_000,
)

test('a long list, count or removal lets other work run in between', async () => {
  await using box = await Box.open()
  // Names of one inode: some file systems take a millisecond to make an inode after many were freed.
  await box.write('one', 'x')
  for (let folder = 0; folder < 100; folder += 1) {
    mkdirSync(box.at(`all/${folder}`), { recursive: true })
    for (let file = 0; file < 400; file += 1) linkSync(box.at('one'), box.at(`all/${folder}/${file}`))
  }
  const { workspace } = box
  for (const call of [
    () => workspace.list({ all: true }),
    () => workspace.usage(),
    () => workspace.remove('all'),
  ]) {
    let turns = 0
    let done = false
    const count = () => {
      turns += 1
      if (!done) setImmediate(count)
    }
    setImmediate(count)
    const start = process.cpuUsage()
    await call()
    done = true
    const { user, system } = process.cpuUsage(start)
    // A slice is 4 ms, of which a busy machine may give this process few: what it had counts, other threads' too.
    expect(turns).toBeGreaterThanOrEqual(Math.floor((user + system) / 16_000))
    expect(turns).toBeGreaterThan(2)
  }
}, 120_000)
