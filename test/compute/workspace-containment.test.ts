import { describe, expect, test } from 'bun:test'
import { lstatSync, mkdirSync, symlinkSync } from 'node:fs'
import { Box, expectFault, KINDS, LINUX } from './workspace-fixture.ts'

if (!LINUX) console.error('SKIP: pinned descriptors exist on Linux only')

/** Every call refuses the path, and the folder outside stays as it was. */
async function expectRefused(box: Box, path: string): Promise<void> {
  await expectFault(box.workspace.read(path), 'outside')
  await expectFault(box.write(path, 'overwritten'), 'outside')
  await expectFault(box.workspace.remove(path), 'outside')
  await expectFault(box.workspace.stat(path), 'outside')
  box.expectOutsideUntouched()
}

for (const kind of KINDS) {
  describe(kind, () => {
    test.each([
      '..',
      '../outside/f',
      'a/../../outside/f',
      'none/../../outside/f',
      './../outside/f',
      '/etc/passwd',
      '//etc/passwd',
      '/',
      '/..',
      '/workspace/../outside/f',
      '/workspace/..',
      '/workspacex/f',
      '/./etc/passwd',
      '/proc/self/root/etc/passwd',
    ])('the path %j leads out', async (path) => {
      await using box = await Box.open(kind)
      mkdirSync(box.at('a'))
      await expectRefused(box, path)
    })

    test.each([
      ['to a file of the host', '/etc/passwd', ''],
      ['to the parent folder', '..', '/outside/f'],
      ['to the folder beside', '../outside', '/f'],
      ['by a detour', 'a/../../outside', '/f'],
      ['to the root of the host', '/', '/etc/passwd'],
      ['through /proc', '/proc/self/cwd', '/package.json'],
      ['to a folder whose name only begins alike', '/workspace-of-another', '/f'],
      ['past the mount point', '/workspace/../outside', '/f'],
      ['to nothing outside', '/no/such/file', ''],
    ])('a link %s leads out', async (_name, target, below) => {
      await using box = await Box.open(kind)
      mkdirSync(box.at('a'))
      symlinkSync(target, box.at('link'))
      symlinkSync('link', box.at('chain'))
      symlinkSync('/workspace/chain', box.at('a/longer'))
      for (const link of ['link', 'chain', 'a/longer', 'a/../link']) await expectRefused(box, link + below)
      await expectRefused(box, 'link')
      expect(lstatSync(box.at('link')).isSymbolicLink()).toBe(true)
    })

    test('a link with the absolute path of the folder outside leads out', async () => {
      await using box = await Box.open(kind)
      symlinkSync(box.outside, box.at('link'))
      symlinkSync(`${box.root}/../outside`, box.at('up'))
      symlinkSync(`${box.root}-beside`, box.at('alike'))
      for (const path of ['link', 'link/f', 'link/new', 'up/f', 'alike']) await expectRefused(box, path)
    })

    test('lists, usage and removal do not go through links', async () => {
      await using box = await Box.open(kind)
      mkdirSync(box.at('d'))
      const before = await box.workspace.usage()
      symlinkSync(box.outside, box.at('d/link'))
      symlinkSync('/usr', box.at('d/usr'))
      expect(await box.workspace.list({ all: true })).toEqual([])
      expect(await box.workspace.usage()).toBeLessThanOrEqual(before + 8192)
      await box.workspace.remove('d')
      box.expectOutsideUntouched()
    })
  })
}
