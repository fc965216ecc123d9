import { expect, test } from 'bun:test'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writePrivate } from '../../src/storage/files.ts'

test.each([
  ['nothing', () => {}],
  ['a file that is open to others', (fresh: string) => writeFileSync(fresh, 'old', { mode: 0o666 })],
  [
    'a link to a file',
    (fresh: string, target: string) => {
      writeFileSync(target, 'old')
      symlinkSync(target, fresh)
    },
  ],
  ['a link to nothing', (fresh: string, target: string) => symlinkSync(target, fresh)],
])('where %s is in the way, a private file is its owner’s alone, and nothing else is written', (_, lay) => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-private-'))
  try {
    const [path, target] = [join(folder, 'secret'), join(folder, 'target')]
    lay(`${path}.new`, target)
    writePrivate(path, 'fresh')
    expect(readFileSync(path, 'utf8')).toBe('fresh')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    if (existsSync(target)) expect(readFileSync(target, 'utf8')).toBe('old')
    expect(readdirSync(folder).filter((name) => name !== 'target')).toEqual(['secret'])
    expect(statSync(path).isFile()).toBe(true)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
