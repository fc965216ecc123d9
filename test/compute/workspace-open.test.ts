import { describe, expect, test } from 'bun:test'
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { Box, expectFault, KINDS } from './workspace-fixture.ts'

for (const kind of KINDS) {
  describe(kind, () => {
    test('a file is read in parts, as long as it is open', async () => {
      await using box = await Box.open(kind)
      await box.write('d/f', '0123456789')
      using file = await box.workspace.open('d/f')
      expect(file.size).toBe(10)
      const text = async (offset: number, length: number) =>
        Buffer.from(await file.read(offset, length)).toString()
      expect(await Promise.all([text(0, 4), text(4, 100), text(10, 5), text(3, 0)])).toEqual([
        '0123',
        '456789',
        '',
        '',
      ])
    })

    test('a file that is let go of while it is read is closed afterwards', async () => {
      await using box = await Box.open(kind)
      await box.write('f', 'x'.repeat(1_000_000))
      const file = await box.workspace.open('f')
      const reading = file.read(0, 1_000_000)
      file[Symbol.dispose]()
      expect(await reading).toHaveLength(1_000_000)
      expect(await box.leftOpen()).toEqual([])
    })

    test('an identity holds until anything of the file changes, and for no other file', async () => {
      await using box = await Box.open(kind)
      await box.write('f', 'one')
      const identity = async () => {
        using file = await box.workspace.open('f')
        return file.identity
      }
      const first = await identity()
      expect(await identity()).toBe(first)
      expect(await box.workspace.unchanged('f', first)).toBe(true)
      await box.write('g', 'two')
      expect(await box.workspace.unchanged('g', first)).toBe(false)
      renameSync(box.at('g'), box.at('f'))
      expect(await box.workspace.unchanged('f', first)).toBe(false)
      const second = await identity()
      await Bun.sleep(10)
      utimesSync(box.at('f'), 1_000, 1_000)
      expect(await box.workspace.unchanged('f', second)).toBe(false)
      rmSync(box.at('f'))
      expect(await box.workspace.unchanged('f', second)).toBe(false)
    })

    test('what stands in a folder is listed in order, links as such', async () => {
      await using box = await Box.open(kind)
      for (const path of ['d/b', 'd/a', 'd/ü', 'd/sub/x']) await box.write(path, '')
      symlinkSync('/etc', box.at('d/link'))
      expect(await box.workspace.entries('d')).toEqual([
        { name: 'a', kind: 'file' },
        { name: 'b', kind: 'file' },
        { name: 'link', kind: 'other' },
        { name: 'sub', kind: 'directory' },
        { name: 'ü', kind: 'file' },
      ])
      expect(await box.workspace.entries('.')).toEqual([{ name: 'd', kind: 'directory' }])
      await expectFault(box.workspace.entries('d/a'), 'not_a_file')
      await expectFault(box.workspace.entries('none'), 'missing')
    })

    test('nothing outside is opened or listed, and only files are opened', async () => {
      await using box = await Box.open(kind)
      mkdirSync(box.at('a'))
      symlinkSync(box.outside, box.at('link'))
      writeFileSync(box.at('f'), '')
      for (const path of ['../outside/f', '/etc/passwd', 'link/f', 'a/../../outside/f']) {
        await expectFault(box.workspace.open(path), 'outside')
      }
      for (const path of ['..', '/etc', 'link', 'a/../..']) {
        await expectFault(box.workspace.entries(path), 'outside')
      }
      await expectFault(box.workspace.open('a'), 'not_a_file')
      await expectFault(box.workspace.open('f/'), 'not_a_file')
      await expectFault(box.workspace.open('none'), 'missing')
      box.expectOutsideUntouched()
    })
  })
}
