import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { type Header, pack } from 'tar-stream'
import { temporaryName } from '../../src/compute/local/temporary-file.ts'
import { Box, KINDS } from './workspace-fixture.ts'

/** A tree as tar lists it: modes, links and times, without owners. */
const listing = (root: string): string =>
  Bun.spawnSync(['sh', '-c', 'find . -printf "%P|%M|%n|%l|%T@|%s\\n" | sort'], {
    cwd: root,
  }).stdout.toString()

async function bytesOf(archive: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(archive))
}

/** An archive with these entries. */
async function* archiveOf(...entries: (Partial<Header> & { name: string; text?: string })[]) {
  const tar = pack()
  for (const { text, ...header } of entries) tar.entry(header, text ?? '')
  tar.finalize()
  yield* tar as AsyncIterable<Uint8Array>
}

describe.each(KINDS)('%s', (kind) => {
  test('a tree is packed and unpacked with its modes, times, links and every name', async () => {
    await using box = await Box.open(kind)
    mkdirSync(box.at('d/empty'), { recursive: true })
    writeFileSync(box.at('d/run'), '#!/bin/sh\n', { mode: 0o755 })
    writeFileSync(box.at('large'), Buffer.alloc(3_000_000, 'abc'))
    writeFileSync(box.at(`${'n'.repeat(200)}ü`), 'long')
    linkSync(box.at('large'), box.at('d/same'))
    symlinkSync('../large', box.at('d/link'))
    symlinkSync('/etc/passwd', box.at('out'))
    writeFileSync(box.at('d/secret'), 's', { mode: 0o600 })
    writeFileSync(box.at('d/nothing'), '')
    // Without descriptors, a name that is not UTF-8 leads nowhere.
    if (kind !== 'by checked path') {
      writeFileSync(Buffer.concat([Buffer.from(`${box.at('d')}/`), Buffer.from([0xff, 0xfe])]), 'raw')
      symlinkSync(Buffer.from([0xfd]), box.at('d/raw-link'))
    }
    writeFileSync(box.at(`d/${temporaryName()}`), 'not the user’s')
    chmodSync(box.at('d/empty'), 0o500)
    // The current time may lie so close below a millisecond that it is rounded up.
    for (const path of ['large', 'd/empty', 'd/run', 'd/secret', 'd/nothing', `${'n'.repeat(200)}ü`])
      utimesSync(box.at(path), 1_234_567_890.125, 1_234_567_890.125)
    utimesSync(box.at('d'), 1_000_000_000, 1_000_000_000)
    const archive = await bytesOf(box.workspace.pack())
    await using copy = await Box.open(kind)
    await copy.workspace.unpack(new Blob([archive]).stream())
    Bun.spawnSync(['sh', '-c', 'rm d/.berth-*; touch -d @1000000000 d'], { cwd: box.root })
    // The times of links and of the top are not kept, others to the millisecond.
    const shown = (root: string) =>
      listing(root)
        .replaceAll(/^(\|.*|.*\|l.*)\|[^|]*(\|\d+)$/gm, '$1$2')
        .replaceAll(/(\.\d{3})\d+\|/g, '$1|')
    expect(shown(copy.root)).toBe(shown(box.root))
    expect(readFileSync(copy.at('d/same')).equals(readFileSync(box.at('large')))).toBe(true)
    expect(lstatSync(copy.at('d/same')).ino).toBe(lstatSync(copy.at('large')).ino)
    if (kind !== 'by checked path')
      expect(readlinkSync(copy.at('d/raw-link'), 'buffer')).toEqual(Buffer.from([0xfd]))
    box.expectOutsideUntouched()
  })

  test('an archive that was not made here writes nothing outside and replaces nothing', async () => {
    await using box = await Box.open(kind)
    await box.write('kept', 'kept')
    const refused = (entries: Parameters<typeof archiveOf>, why: string) =>
      expect(box.workspace.unpack(archiveOf(...entries))).rejects.toThrow(why)
    await refused([{ name: '../outside/new', text: 'x' }], 'leads out')
    await refused([{ name: `${box.outside}/new`, text: 'x' }], 'leads out')
    await refused([{ name: 'a/../../outside/new', text: 'x' }], 'leads out')
    await refused([{ name: 'kept', text: 'x' }], 'exists already')
    await refused([{ name: 'kept/below', text: 'x' }], 'something else')
    await refused([{ name: 'fifo', type: 'fifo' }], 'neither a file')
    await refused([{ name: 'hard', type: 'link', linkname: '../outside/f' }], 'leads out')
    const out: Parameters<typeof archiveOf>[0] = { name: 'out', type: 'symlink', linkname: box.outside }
    await refused([out, { name: 'out/new', text: 'x' }], 'something else')
    await refused([{ name: 'stolen', type: 'link', linkname: 'out/f' }], 'something else')
    await box.workspace.unpack(archiveOf({ name: 'suid', mode: 0o6755, text: 'x' }))
    expect(lstatSync(box.at('suid')).mode & 0o7777).toBe(0o755)
    expect(await box.text('kept')).toBe('kept')
    box.expectOutsideUntouched()
  })

  test('an archive that breaks off is reported, and a reader that goes away stops the packing', async () => {
    await using box = await Box.open(kind)
    await box.workspace.write('large', new Uint8Array(5_000_000))
    const archive = await bytesOf(box.workspace.pack())
    await using copy = await Box.open(kind)
    async function* cut() {
      yield archive.subarray(0, 2_000_000)
      throw new Error('the disk was pulled out')
    }
    await expect(copy.workspace.unpack(cut())).rejects.toThrow('pulled out')
    await box.workspace.remove('large')
    await copy.workspace.remove('large')
    await expect(copy.workspace.unpack(new Blob([archive.subarray(0, 2_000_000)]).stream())).rejects.toThrow()
    for await (const chunk of copy.workspace.pack()) {
      expect(chunk.length).toBeGreaterThan(0)
      break
    }
  })
})
