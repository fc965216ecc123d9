import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { isTemporary } from '../../src/compute/local/temporary-file.ts'
import { Box, expectFault, KINDS, LINUX, WAYS } from './workspace-fixture.ts'

if (!LINUX) console.error('SKIP: names that are not UTF-8 and pinned descriptors exist on Linux only')

for (const kind of KINDS) {
  describe(kind, () => {
    test('a written file is read back byte for byte, its folders are made', async () => {
      await using box = await Box.open(kind)
      const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index % 256)
      await box.workspace.write('a/b/c.bin', bytes)
      expect(await box.workspace.read('/workspace/a/b/c.bin')).toEqual(bytes)
      await box.workspace.write('a/b/c.bin', new Uint8Array())
      expect(await box.workspace.read('a/b/c.bin')).toEqual(new Uint8Array())
    })

    test('spellings of one path lead to one file', async () => {
      await using box = await Box.open(kind)
      await box.write('a/b', 'here')
      for (const path of [
        'a//b',
        './a/b',
        'a/./b',
        'a/../a/b',
        'none/../a/b',
        'none/x/../../a/b',
        '/workspace/a/b',
        '//workspace//a/b',
      ]) {
        expect(await box.text(path)).toBe('here')
      }
      await box.write('new/../a/b', 'again')
      expect(await box.text('a/b')).toBe('again')
      expect(readdirSync(box.root)).toEqual(['a'])
    })

    test('the workspace itself can be looked at, but not read, replaced or removed', async () => {
      await using box = await Box.open(kind)
      symlinkSync('.', box.at('self'))
      for (const path of ['', '.', './', '/workspace', '/workspace/', 'x/..']) {
        expect(await box.workspace.stat(path)).toEqual({ kind: 'directory', size: 0 })
        await expectFault(box.workspace.read(path), 'not_a_file')
        await expectFault(
          box.workspace.write(path, new Uint8Array()),
          path === '' || path === '/workspace' ? 'root' : 'root',
        )
        await expectFault(box.workspace.remove(path), 'root')
      }
      await expectFault(box.write('self', 'x'), 'root')
    })

    test('what is not there is missing', async () => {
      await using box = await Box.open(kind)
      for (const path of [
        'none',
        'none/deeper',
        '%2e%2e/outside/f',
        '..\\outside\\f',
        '‥/outside/f',
        '．．/outside/f',
        '...',
      ]) {
        await expectFault(box.workspace.read(path), 'missing')
        await expectFault(box.workspace.remove(path), 'missing')
        expect(await box.workspace.stat(path)).toBeNull()
      }
    })

    test('a name that only looks like a parent folder names a file inside', async () => {
      await using box = await Box.open(kind)
      for (const path of ['%2e%2e/f', '..\\f', '‥/f', '．．/f', '.../f', '~/f', '..f'])
        await box.write(path, path)
      expect((await box.workspace.list({ all: false })).length).toBe(7)
      box.expectOutsideUntouched()
    })

    test('a path that can name no file is invalid and changes nothing', async () => {
      await using box = await Box.open(kind)
      for (const path of [
        'a\0b',
        'new/a\0',
        'x'.repeat(5000),
        `${'ab/'.repeat(1700)}c`,
        `new/${'x'.repeat(256)}`,
        'lone\ud800',
        'é'.repeat(128),
      ]) {
        await expectFault(box.write(path, 'x'), 'invalid')
        await expectFault(box.workspace.read(path), 'invalid')
        await expectFault(box.workspace.remove(path), 'invalid')
        await expectFault(box.workspace.stat(path), 'invalid')
      }
      await expectFault(box.write('.berth-abc-0123456789abcdef.tmp', 'x'), 'invalid')
      expect(readdirSync(box.root)).toEqual([])
    })

    test('the longest name and a deep path can be written, replaced, read and removed', async () => {
      await using box = await Box.open(kind)
      for (const path of ['n'.repeat(255), 'é'.repeat(127), `${'d/'.repeat(1000)}f`]) {
        await box.write(path, 'one')
        await box.write(path, 'two')
        expect(await box.text(path)).toBe('two')
        await box.workspace.remove(path)
        await expectFault(box.workspace.read(path), 'missing')
      }
    }, 120_000)

    test('a folder or a file in the way is not a file', async () => {
      await using box = await Box.open(kind)
      await box.write('folder/file', 'x')
      await expectFault(box.workspace.read('folder'), 'not_a_file')
      await expectFault(box.write('folder', 'x'), 'not_a_file')
      await expectFault(box.write('folder/file/below', 'x'), 'not_a_file')
      await expectFault(box.workspace.read('folder/file/below'), 'not_a_file')
      await expectFault(box.workspace.read('folder/file/../file'), 'not_a_file')
      await expectFault(box.workspace.read('folder/file/'), 'not_a_file')
      for (const path of ['new/', 'new/.', 'folder/file/'])
        await expectFault(box.write(path, 'x'), 'not_a_file')
      expect(await box.workspace.stat('folder/file/below')).toBeNull()
      expect(await box.workspace.stat('folder/')).toEqual({ kind: 'directory', size: 0 })
      expect(await box.workspace.stat('folder/file')).toEqual({ kind: 'file', size: 1 })
      expect(await box.workspace.list({ all: true })).toEqual(['folder/file'])
    })

    test('a FIFO, a socket or a device is refused at once', async () => {
      await using box = await Box.open(kind)
      Bun.spawnSync(['mkfifo', box.at('fifo')])
      const socket = Bun.listen({ unix: box.at('socket'), socket: { data() {} } })
      try {
        const names = ['fifo', 'socket']
        if (Bun.spawnSync(['mknod', box.at('zero'), 'c', '1', '5'], { stderr: 'ignore' }).success)
          names.push('zero')
        else console.error('SKIP: a device node, which only root can make')
        for (const name of names) {
          await expectFault(box.workspace.read(name), 'not_a_file')
          await expectFault(box.write(name, 'x'), 'not_a_file')
          expect(await box.workspace.stat(name)).toEqual({ kind: 'other', size: 0 })
        }
        expect(await box.workspace.list({ all: true })).toEqual([])
        for (const name of names) await box.workspace.remove(name)
        expect(readdirSync(box.root)).toEqual([])
      } finally {
        socket.stop()
      }
    })

    test('a replaced file keeps its permission bits, a new one is not executable', async () => {
      await using box = await Box.open(kind)
      await box.write('run', 'x')
      expect(lstatSync(box.at('run')).mode & 0o777).toBe(0o644 & ~process.umask())
      for (const mode of [0o755, 0o600, 0o444]) {
        chmodSync(box.at('run'), mode)
        await box.write('run', 'y')
        expect(lstatSync(box.at('run')).mode & 0o777).toBe(mode)
      }
      chmodSync(box.at('run'), 0o4755)
      await box.write('run', 'y')
      expect(lstatSync(box.at('run')).mode & 0o7777).toBe(0o755)
    })

    test('a hard link is a file of its own once one of its names is replaced', async () => {
      await using box = await Box.open(kind)
      await box.write('one', 'old')
      linkSync(box.at('one'), box.at('two'))
      await box.write('one', 'new')
      expect(await box.text('one')).toBe('new')
      expect(await box.text('two')).toBe('old')
    })

    test('removing takes a file, a folder with all below it, or the link and not its target', async () => {
      await using box = await Box.open(kind)
      await box.write('folder/deep/file', 'x')
      await box.write('kept/file', 'x')
      mkdirSync(box.at('folder/empty'))
      symlinkSync(box.outside, box.at('folder/out'))
      symlinkSync('../kept', box.at('folder/in'))
      symlinkSync('kept', box.at('link'))
      symlinkSync('nowhere', box.at('dangling'))
      symlinkSync('loop', box.at('loop'))
      for (const path of ['link', 'dangling', 'loop', 'folder/']) await box.workspace.remove(path)
      expect(readdirSync(box.root)).toEqual(['kept'])
      expect(await box.text('kept/file')).toBe('x')
      await expectFault(box.workspace.remove('kept/file/'), 'missing')
      await box.workspace.remove('kept/file')
      expect(readdirSync(box.at('kept'))).toEqual([])
      box.expectOutsideUntouched()
    })

    test('links inside the workspace are followed, whatever way they are spelt', async () => {
      await using box = await Box.open(kind)
      await box.write('a/b/target', 'old')
      const links = {
        relative: 'a/b/target',
        absolute: '/workspace/a/b/target',
        host: box.at('a/b/target'),
        up: 'nothing/../a/b/target',
        chain: 'relative',
        'a/parent': '..',
        'a/b/dots': '../../a/./b//target',
        folder: 'a/b/',
        root: '/workspace',
      }
      for (const [name, target] of Object.entries(links)) symlinkSync(target, box.at(name))
      const files = [
        'relative',
        'absolute',
        'host',
        'up',
        'chain',
        'a/b/dots',
        'folder/target',
        'root/a/b/target',
        'a/parent/a/b/target',
        'folder/../b/target',
        'a/parent/a/parent/root/folder/dots',
      ]
      for (const [index, path] of files.entries()) {
        await box.write(path, String(index))
        expect(await box.text('a/b/target')).toBe(String(index))
        expect(await box.text(path)).toBe(String(index))
        expect((await box.workspace.stat(path))?.kind).toBe('file')
      }
      for (const [name, target] of Object.entries(links)) expect(readlinkSync(box.at(name))).toBe(target)
      expect(await box.workspace.list({ all: true })).toEqual(['a/b/target'])
    })

    test('a file of any size that takes no disk is refused before it is read', async () => {
      await using box = await Box.open(kind)
      writeFileSync(box.at('f'), 'text')
      truncateSync(box.at('f'), 2 ** 40)
      await expectFault(box.workspace.read('f'), 'too_large')
      await box.write('g', 'text')
      await expectFault(box.workspace.read('g', 3), 'too_large')
      expect(await box.workspace.read('g', 4)).toHaveLength(4)
    })

    test('writing through a dangling link makes its target', async () => {
      await using box = await Box.open(kind)
      symlinkSync('new/folder/file', box.at('link'))
      await expectFault(box.workspace.read('link'), 'missing')
      expect(await box.workspace.stat('link')).toBeNull()
      await box.write('link', 'x')
      expect(await box.workspace.list({ all: true })).toEqual(['new/folder/file'])
    })

    test('a loop of links, or a chain of more than 40, ends in a refusal', async () => {
      await using box = await Box.open(kind)
      symlinkSync('b', box.at('a'))
      symlinkSync('a', box.at('b'))
      writeFileSync(box.at('l0'), 'end')
      for (let n = 1; n <= 41; n += 1) symlinkSync(`l${n - 1}`, box.at(`l${n}`))
      for (const path of ['a', 'a/below', 'l41']) {
        await expectFault(box.workspace.read(path), 'not_a_file')
        await expectFault(box.write(path, 'x'), 'not_a_file')
        expect(await box.workspace.stat(path)).toBeNull()
      }
      expect(await box.text('l40')).toBe('end')
    })

    test('the list is sorted by code point, without links, .git and node_modules', async () => {
      await using box = await Box.open(kind)
      const shown = [
        'Z',
        'a.txt',
        'a/b',
        'a0',
        'line\nbreak',
        'é',
        '\uffee',
        '\u{1f600}',
        '\u{1f600}/x'.replace('/', '-'),
      ]
      const hidden = ['.git/config', 'node_modules/m/i.js', 'a/node_modules/x', 'a/.git/x']
      for (const path of [...hidden, ...shown]) await box.write(path, 'x')
      await box.write('.gitignore', 'x')
      await box.write('b/node_modules.js', 'x')
      symlinkSync('a', box.at('link'))
      writeFileSync(box.at('a/.berth-abc-0123456789abcdef.tmp'), 'left over')
      const byCodePoint = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
      const files = [...shown, '.gitignore', 'b/node_modules.js']
      expect(await box.workspace.list({ all: false })).toEqual(files.toSorted(byCodePoint))
      expect(await box.workspace.list({ all: true })).toEqual([...files, ...hidden].toSorted(byCodePoint))
      for (const path of files) expect(await box.text(path)).toBe('x')
    })

    test('a file named like a left-out folder is listed', async () => {
      await using box = await Box.open(kind)
      await box.write('.git', 'gitdir: elsewhere')
      expect(await box.workspace.list({ all: false })).toEqual(['.git'])
    })
  })
}

test.skipIf(!LINUX).each(WAYS)(
  '%s: names that are not UTF-8 are passed over by the list, counted and removed with their folder',
  async (kind) => {
    await using box = await Box.open(kind)
    await box.write('d/plain', 'x')
    await box.write('d/\ufffd', 'a real replacement character')
    const raw = Buffer.concat([Buffer.from(`${box.at('d')}/`), Buffer.from([0xff, 0xfe])])
    const before = await box.workspace.usage()
    writeFileSync(raw, 'x'.repeat(5000))
    mkdirSync(Buffer.concat([raw, Buffer.from('d')]))
    writeFileSync(Buffer.concat([raw, Buffer.from('d/f')]), 'x')
    symlinkSync(raw, box.at('d/link'))
    expect(await box.workspace.list({ all: true })).toEqual(['d/plain', 'd/\ufffd'])
    expect(await box.workspace.usage()).toBeGreaterThanOrEqual(before + 8192)
    await expectFault(box.workspace.read('d/link'), 'not_a_file')
    await box.workspace.remove('d')
    expect(readdirSync(box.root)).toEqual([])
  },
)

test.each(WAYS)('%s: a failed write leaves no temporary file', async (kind) => {
  await using box = await Box.open(kind)
  mkdirSync(box.at('target'))
  const write = box.write('late', 'x'.repeat(40 * 1024 * 1024))
  mkdirSync(box.at('late'))
  await expectFault(write, 'not_a_file')
  expect(readdirSync(box.root).filter(isTemporary)).toEqual([])
})
