import { expect, test } from 'bun:test'
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Staging } from '../../src/compute/workspace.ts'
import { Box, expectFault, SECRET, WAYS } from './workspace-fixture.ts'

const mode = (path: string) => (lstatSync(path).mode & 0o7777).toString(8)

/** A staging folder with a prepared folder `code` in it. */
async function prepare(box: Box, files: Record<string, string> = { 'a.txt': 'new' }): Promise<Staging> {
  const staging = await box.workspace.staging()
  mkdirSync(join(staging.path, 'code'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(staging.path, 'code', name), text)
  return staging
}

const stagingArea = (box: Box) => readdirSync(join(box.folder, 'staging'))

test.each(WAYS)(
  '%s: a prepared folder is moved to its path, parents are made, and nothing is left where it was prepared',
  async (kind) => {
    await using box = await Box.open(kind)
    {
      await using staging = await prepare(box)
      expect(mode(staging.path)).toBe('700')
      await box.workspace.moveIn(join(staging.path, 'code'), 'projects/app')
      expect(readdirSync(staging.path)).toEqual([])
    }
    expect(await box.text('projects/app/a.txt')).toBe('new')
    expect(stagingArea(box)).toEqual([])
  },
)

test.each(WAYS)(
  '%s: what stood at the path is replaced whole: a folder, a file, a link, which is not followed',
  async (kind) => {
    await using box = await Box.open(kind)
    mkdirSync(box.at('folder/sub'), { recursive: true })
    writeFileSync(box.at('folder/sub/old'), 'old')
    writeFileSync(box.at('file'), 'old')
    symlinkSync(box.outside, box.at('link'))
    for (const path of ['folder', 'file', 'link']) {
      await using staging = await prepare(box)
      await box.workspace.moveIn(join(staging.path, 'code'), path)
      expect(lstatSync(box.at(path)).isDirectory()).toBe(true)
      expect(readdirSync(box.at(path))).toEqual(['a.txt'])
    }
    expect(stagingArea(box)).toEqual([])
    box.expectOutsideUntouched()
  },
)

test.each(WAYS)(
  '%s: no link on the way leads a folder out of the workspace, and a refusal changes nothing',
  async (kind) => {
    await using box = await Box.open(kind)
    symlinkSync(box.outside, box.at('out'))
    symlinkSync('..', box.at('up'))
    writeFileSync(box.at('file'), 'kept')
    await using staging = await prepare(box)
    const code = join(staging.path, 'code')
    await expectFault(box.workspace.moveIn(code, 'out/app'), 'outside')
    await expectFault(box.workspace.moveIn(code, 'up/app'), 'outside')
    await expectFault(box.workspace.moveIn(code, '../app'), 'outside')
    await expectFault(box.workspace.moveIn(code, '/etc/app'), 'outside')
    await expectFault(box.workspace.moveIn(code, 'file/app'), 'not_a_file')
    await expectFault(box.workspace.moveIn(code, ''), 'root')
    await expectFault(box.workspace.moveIn(code, 'a\0b'), 'invalid')
    expect(readFileSync(join(code, 'a.txt'), 'utf8')).toBe('new')
    expect(readdirSync(box.root).sort()).toEqual(['file', 'out', 'up'])
    box.expectOutsideUntouched()
  },
)

test.each(WAYS)(
  '%s: no set-user-id bit, odd mode or closed folder comes along; execute bits and links do',
  async (kind) => {
    await using box = await Box.open(kind)
    await using staging = await prepare(box, { script: '#!/bin/sh', secret: 's', plain: '' })
    const code = join(staging.path, 'code')
    mkdirSync(join(code, 'closed'))
    writeFileSync(join(code, 'closed/inner'), '')
    symlinkSync('plain', join(code, 'link'))
    chmodSync(join(code, 'script'), 0o6711)
    chmodSync(join(code, 'secret'), 0o400)
    chmodSync(join(code, 'plain'), 0o666)
    chmodSync(join(code, 'closed'), 0o1000)
    await box.workspace.moveIn(code, 'app')
    const modes = ['', 'script', 'secret', 'plain', 'closed', 'closed/inner'].map((name) =>
      mode(box.at(`app/${name}`)),
    )
    expect(modes).toEqual(['755', '755', '644', '644', '755', '644'])
    expect(readlinkSync(box.at('app/link'))).toBe('plain')
  },
)

test.each(WAYS)(
  '%s: pipes, and files that have a second name somewhere on the machine, are never placed',
  async (kind) => {
    await using box = await Box.open(kind)
    await using staging = await prepare(box)
    const code = join(staging.path, 'code')
    linkSync(join(box.outside, 'f'), join(code, 'shared'))
    await expect(box.workspace.moveIn(code, 'app')).rejects.toThrow('"shared" cannot be placed')
    await Bun.$`rm ${code}/shared && mkfifo ${code}/pipe`.quiet()
    await expect(box.workspace.moveIn(code, 'app')).rejects.toThrow('"pipe" cannot be placed')
    expect(readdirSync(box.root)).toEqual([])
    expect(mode(join(box.outside, 'f'))).not.toBe('755')
  },
)

test.each(WAYS)('%s: only what was prepared in the staging area is placed', async (kind) => {
  await using box = await Box.open(kind)
  await using staging = await prepare(box)
  symlinkSync(box.outside, join(staging.path, 'link'))
  for (const folder of [box.outside, join(staging.path, '../../outside'), join(staging.path, 'link')])
    await expect(box.workspace.moveIn(folder, 'app')).rejects.toThrow('was not prepared')
  expect(readdirSync(box.root)).toEqual([])
  box.expectOutsideUntouched()
})

test.each(WAYS)(
  '%s: while the server puts other things in its place, the folder arrives whole and nothing goes outside',
  async (kind) => {
    await using box = await Box.open(kind)
    const script = new URL('workspace-swap-links.ts', import.meta.url).pathname
    await using flip = Bun.spawn([process.execPath, script, box.root, box.outside], {
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const lines = flip.stdout.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]()
    expect((await lines.next()).value).toContain('ready')
    let placed = 0
    // Each takes several turns of two processes.
    const rounds = kind === 'through calls' ? 60 : 200
    for (let round = 0; round < rounds; round += 1) {
      await using staging = await prepare(box, { a: '1', b: '2' })
      const code = join(staging.path, 'code')
      await box.workspace.moveIn(code, ['d/app', 'd', 'f'][round % 3] ?? 'd').then(
        () => {
          placed += 1
        },
        () => expect(readdirSync(code).sort()).toEqual(['a', 'b']),
      )
    }
    flip.stdin.end()
    expect(Number((await lines.next()).value)).toBeGreaterThan(10)
    expect(await flip.exited).toBe(0)
    expect(placed).toBeGreaterThan(10)
    expect(readFileSync(join(box.outside, 'f'), 'utf8')).toBe(SECRET)
    box.expectOutsideUntouched()
  },
  120_000,
)
