import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ManifestReader } from '../../src/cli/directory/manifest.ts'
import { surveyDirectory } from '../../src/cli/directory/survey.ts'
import { compareManifests } from '../../src/resources/files/manifest.ts'
import { temporaryFolder } from './command.ts'

let folder: ReturnType<typeof temporaryFolder>
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => folder[Symbol.dispose]())

const at = (path: string) => join(folder.path, path)

test('a manifest shows which files, modes and links differ, and what only the other tree has', async () => {
  const reader = new ManifestReader()
  const read = async () => reader.read(await surveyDirectory(folder.path))
  mkdirSync(at('src'))
  for (const name of ['src/a.js', 'b.js', 'c.js', 'run']) writeFileSync(at(name), 'one')
  symlinkSync('b.js', at('link'))
  const before = await read()
  expect(compareManifests(before, before)).toEqual({ changed: [], extra: [] })
  writeFileSync(at('src/a.js'), 'two')
  chmodSync(at('run'), 0o755)
  rmSync(at('c.js'))
  rmSync(at('link'))
  symlinkSync('run', at('link'))
  writeFileSync(at('new.js'), '')
  const after = await read()
  expect(compareManifests(after, before)).toEqual({
    changed: ['new.js', 'run', 'src/a.js', 'link'],
    extra: ['c.js'],
  })
  expect(compareManifests(after, { files: [], links: [] }).changed).toHaveLength(5)
})

test('a hash is taken of the whole of a large file', async () => {
  const content = Buffer.alloc(9_000_001, 'berth')
  writeFileSync(at('large'), content)
  const { files } = await new ManifestReader().read(await surveyDirectory(folder.path))
  expect(files[0]?.sha256).toBe(new Bun.CryptoHasher('sha256').update(content).digest('hex'))
})

test('a timer fires while much is read, and the read bytes are reported', async () => {
  const sizes = [40_000_000, 9_000_000, 4_000_000]
  for (const [index, size] of sizes.entries()) writeFileSync(at(`large${index}`), Buffer.alloc(size, 'berth'))
  const survey = await surveyDirectory(folder.path)
  let told = 0
  const seen: number[] = []
  const timer = setInterval(() => seen.push(told), 1)
  const { files } = await new ManifestReader().read(survey, (bytes) => {
    told += bytes
  })
  clearInterval(timer)
  expect(files).toHaveLength(sizes.length)
  expect(told).toBe(53_000_000)
  expect(seen.some((bytes) => bytes > 0 && bytes < told)).toBe(true)
})
