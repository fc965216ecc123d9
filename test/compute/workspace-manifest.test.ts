import { expect, test } from 'bun:test'
import { chmodSync, lstatSync, mkdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Box, expectFault, WAYS } from './workspace-fixture.ts'

const sha256 = (content: string | Uint8Array) => new Bun.CryptoHasher('sha256').update(content).digest('hex')

const file = (path: string, content: string, executable = false) => ({
  kind: 'file' as const,
  path,
  size: content.length,
  sha256: sha256(content),
  executable,
})

test.each(WAYS)(
  '%s: a manifest has the content and mode of files, and the targets of links',
  async (kind) => {
    await using box = await Box.open(kind)
    mkdirSync(box.at('app/src/deep'), { recursive: true })
    mkdirSync(box.at('app/node_modules'))
    writeFileSync(box.at('app/node_modules/x.js'), 'left out')
    writeFileSync(box.at('app/src/deep/a.js'), 'a')
    writeFileSync(box.at('app/run'), 'go')
    chmodSync(box.at('app/run'), 0o755)
    symlinkSync('src/deep', box.at('app/link'))
    expect(await box.workspace.manifest('app', null)).toEqual([
      { kind: 'link', path: 'link', target: 'src/deep' },
      file('run', 'go', true),
      file('src/deep/a.js', 'a'),
    ])
    expect((await box.workspace.manifest('', null)).map(({ path }) => path)).toEqual([
      'app/link',
      'app/run',
      'app/src/deep/a.js',
    ])
  },
)

test.each(WAYS)('%s: of the paths that are asked for, only files and links are there', async (kind) => {
  await using box = await Box.open(kind)
  mkdirSync(box.at('app/dir'), { recursive: true })
  for (const name of ['b', 'a', 'dir/c', 'dir/d']) writeFileSync(box.at(`app/${name}`), name)
  symlinkSync(box.outside, box.at('app/out'))
  const asked = ['dir/d', 'b', 'missing', 'dir', 'dir/c', 'b/below', 'out/f', 'no/such', 'b', 'a']
  expect(await box.workspace.manifest('app', asked)).toEqual([
    file('a', 'a'),
    file('b', 'b'),
    file('dir/c', 'dir/c'),
    file('dir/d', 'dir/d'),
  ])
  expect(await box.workspace.manifest('app', [])).toEqual([])
  for (const path of ['../x', 'dir/', './a', 'dir//c', ''])
    await expectFault(box.workspace.manifest('app', [path]), 'invalid')
  await expectFault(box.workspace.manifest('app', ['/etc/passwd']), 'outside')
  await expectFault(box.workspace.manifest('none', null), 'missing')
  await expectFault(box.workspace.manifest('app/a', null), 'not_a_file')
  box.expectOutsideUntouched()
})

test.each(WAYS)('%s: a large file is described as it is', async (kind) => {
  await using box = await Box.open(kind)
  const content = new Uint8Array(3 * 1024 * 1024 + 7).map((_, index) => index % 251)
  writeFileSync(box.at('large'), content)
  expect(await box.workspace.manifest('', ['large'])).toEqual([
    { kind: 'file', path: 'large', size: content.length, sha256: sha256(content), executable: false },
  ])
})

test.each(WAYS)(
  '%s: a prepared folder is merged: what it has is replaced, what else is there stays',
  async (kind) => {
    await using box = await Box.open(kind)
    mkdirSync(box.at('app/src'), { recursive: true })
    for (const name of ['src/old.js', 'src/same.js', 'data.db', 'link'])
      writeFileSync(box.at(`app/${name}`), 'old')
    symlinkSync(box.outside, box.at('app/out'))
    await using staging = await box.workspace.staging()
    const code = join(staging.path, 'code')
    mkdirSync(join(code, 'src/new'), { recursive: true })
    for (const name of ['src/old.js', 'src/new/a.js', 'out']) writeFileSync(join(code, name), 'new')
    chmodSync(join(code, 'src/new/a.js'), 0o700)
    symlinkSync('src/old.js', join(code, 'link'))
    await box.workspace.mergeIn(code, 'app')
    for (const name of ['src/old.js', 'src/new/a.js', 'out'])
      expect(await box.text(`app/${name}`)).toBe('new')
    for (const name of ['src/same.js', 'data.db']) expect(await box.text(`app/${name}`)).toBe('old')
    expect(readlinkSync(box.at('app/link'))).toBe('src/old.js')
    expect(lstatSync(box.at('app/src/new/a.js')).mode & 0o777).toBe(0o755)
    box.expectOutsideUntouched()
  },
)

test.each(WAYS)('%s: a file that is put back keeps its permissions, but no set-user-id', async (kind) => {
  await using box = await Box.open(kind)
  writeFileSync(box.at('key'), 'old', { mode: 0o600 })
  using file = await box.workspace.open('key')
  expect(file.mode).toBe(0o600)
  await using staging = await box.workspace.staging()
  const code = join(staging.path, 'code')
  mkdirSync(code)
  writeFileSync(join(code, 'key'), 'new')
  chmodSync(join(code, 'key'), 0o4600)
  await box.workspace.mergeIn(code, '', { keepModes: true })
  expect(await box.text('key')).toBe('new')
  expect(lstatSync(box.at('key')).mode & 0o7777).toBe(0o600)
})

test.each(WAYS)('%s: no file is merged in place of a directory, or out of the workspace', async (kind) => {
  await using box = await Box.open(kind)
  mkdirSync(box.at('app/dir'), { recursive: true })
  symlinkSync(box.outside, box.at('out'))
  const merge = async (name: string, path: string) => {
    await using staging = await box.workspace.staging()
    mkdirSync(join(staging.path, 'code'))
    writeFileSync(join(staging.path, 'code', name), 'new')
    await box.workspace.mergeIn(join(staging.path, 'code'), path)
  }
  await expectFault(merge('dir', 'app'), 'not_a_file')
  await expectFault(merge('f', 'out'), 'outside')
  await expectFault(merge('f', '../outside'), 'outside')
  box.expectOutsideUntouched()
})
