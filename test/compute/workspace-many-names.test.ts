import { expect, test } from 'bun:test'
import { linkSync, lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { copyTree } from '../../src/compute/local/copy-tree.ts'
import { pinRoot } from '../../src/compute/local/pinned.ts'
import { Box, expectFault, LINUX, WAYS } from './workspace-fixture.ts'

/** Names that make a directory a large one, which is read in pieces. */
const NAMES = 7_000
const LARGE = 128 * 1024

const nameOf = (index: number): string => `${'n'.repeat(40)}-${index}`

/** Gives a file many names, which takes neither inodes nor, but for the directory, any disk. */
function linkMany(file: string, dir: string, count: number): void {
  for (let index = 0; index < count; index += 1) linkSync(file, join(dir, nameOf(index)))
}

/** Fills a directory with many names, directories among them, a link and a name that is not UTF-8. */
function fill(dir: string): void {
  mkdirSync(join(dir, 'below/deep'), { recursive: true })
  mkdirSync(join(dir, 'other'))
  writeFileSync(join(dir, 'below/deep/f'), 'f')
  writeFileSync(join(dir, 'other/f'), 'f')
  writeFileSync(Buffer.concat([Buffer.from(`${dir}/`), Buffer.from([0xff])]), '')
  symlinkSync('other', join(dir, 'link'))
  linkMany(join(dir, 'other/f'), dir, NAMES)
  expect(lstatSync(dir).size).toBeGreaterThanOrEqual(LARGE)
}

test.skipIf(!LINUX).each(WAYS)(
  '%s: every entry of a directory with thousands of names is found once',
  async (kind) => {
    await using box = await Box.open(kind)
    mkdirSync(box.at('d'))
    fill(box.at('d'))
    const names = Array.from({ length: NAMES }, (_, index) => nameOf(index))
    const paths = [...names, 'below/deep/f', 'other/f'].map((name) => `d/${name}`).sort()
    expect(await box.workspace.list({ all: true })).toEqual(paths)
    const entries = await box.workspace.entries('d')
    expect(entries.map(({ name }) => name)).toEqual([...names, 'below', 'link', 'other'].sort())
    expect(entries.filter((entry) => entry.kind !== 'file')).toEqual([
      { name: 'below', kind: 'directory' },
      { name: 'link', kind: 'other' },
      { name: 'other', kind: 'directory' },
    ])
    const described = await box.workspace.manifest('d', null)
    expect(described).toHaveLength(NAMES + 3)
    expect(await box.workspace.usage()).toBe(box.blocks())
    await box.workspace.remove('d')
    expect(readdirSync(box.root)).toEqual([])
  },
)

test.skipIf(!LINUX)('a directory with thousands of names is copied whole', async () => {
  await using box = await Box.open()
  fill(box.root)
  const copy = join(box.folder, 'copy')
  mkdirSync(copy)
  {
    using root = pinRoot(box.root, LINUX)
    await copyTree(root, copy)
  }
  const namesIn = (dir: string): string[] => readdirSync(dir, { recursive: true, encoding: 'latin1' }).sort()
  expect(namesIn(copy)).toEqual(namesIn(box.root))
})

test.skipIf(!LINUX)('more paths than fit into memory are refused, not listed', async () => {
  await using box = await Box.open()
  const deep = Array(15).fill('d'.repeat(250)).join('/')
  mkdirSync(box.at(deep), { recursive: true })
  writeFileSync(box.at('f'), 'x')
  linkMany(box.at('f'), box.at(deep), 18_000)
  await expectFault(box.workspace.list({ all: true }), 'too_large')
  await expectFault(box.workspace.manifest('', null), 'too_large')
  expect(await box.workspace.usage()).toBeGreaterThan(0)
})

test.skipIf(!LINUX)('holes of any size are not hashed, and a file of many names is hashed once', async () => {
  await using box = await Box.open()
  await box.write('f', 'content')
  for (let index = 0; index < 20; index += 1) linkSync(box.at('f'), box.at(`l${index}`))
  const described = await box.workspace.manifest('', null)
  expect(new Set(described.map((entry) => 'sha256' in entry && entry.sha256)).size).toBe(1)
  expect(Bun.spawnSync(['truncate', '-s', '1T', box.at('holes')]).exitCode).toBe(0)
  await expectFault(box.workspace.manifest('', null), 'too_large')
  expect(await box.workspace.manifest('', ['f'])).toHaveLength(1)
})
