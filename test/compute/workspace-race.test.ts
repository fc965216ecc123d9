import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { isTemporary } from '../../src/compute/local/temporary-file.ts'
import { WorkspaceError } from '../../src/compute/workspace.ts'
import { everyCombination } from '../support/thorough.ts'
import { Box, SECRET, WAYS } from './workspace-fixture.ts'

const LINUX = process.platform === 'linux'
if (!LINUX) console.error('SKIP: without descriptors that pin a folder, a race is narrowed and not closed')

/**
 * How long a race goes on, in ms: some thousand swaps against some hundred calls. Each run meets other moments, so short
 * races in every run find what long ones do.
 */
const RACE_MS = everyCombination ? 1500 : 400

/** How much longer a race goes on where a busy machine has let too few calls succeed. */
const PATIENCE_MS = 30_000

/**
 * Runs calls against a workspace whose entries another process keeps swapping, for a time in ms and until more than `calls`
 * of them have succeeded; returns how many swaps there were.
 */
async function race(
  box: Box,
  ms: number,
  call: (round: number) => Promise<void>,
  calls = 0,
): Promise<number> {
  const script = new URL('workspace-swap-links.ts', import.meta.url).pathname
  await using flip = Bun.spawn([process.execPath, script, box.root, box.outside], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const lines = flip.stdout.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]()
  expect((await lines.next()).value).toContain('ready')
  const end = performance.now() + ms
  const isOver = (succeeded: number): boolean =>
    performance.now() > (succeeded > calls ? end : end + PATIENCE_MS)
  for (let round = 0, succeeded = 0; !isOver(succeeded); round += 1) {
    try {
      await call(round)
      succeeded += 1
    } catch (error) {
      // What the other side does makes paths come and go; only what is reached counts.
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      if (!(error instanceof WorkspaceError) && code !== 'ENOENT') throw error
    }
  }
  flip.stdin.end()
  const swaps = Number((await lines.next()).value)
  expect(await flip.exited).toBe(0)
  return swaps
}

test.skipIf(!LINUX).each(WAYS)(
  '%s: no read returns a byte from outside while folders and files are swapped for links',
  async (kind) => {
    await using box = await Box.open(kind)
    const seen = new Map<string, number>()
    const swaps = await race(box, RACE_MS, async (round) => {
      const path = ['d/f', 'f', 'd/../f', 'd.link/f'][round % 4] ?? 'f'
      const size = (await box.workspace.stat(path))?.size
      const text = await box.text(path)
      seen.set(text, (seen.get(text) ?? 0) + 1)
      if (size !== undefined) expect([0, 'inside'.length]).toContain(size)
    })
    expect(swaps).toBeGreaterThan(100)
    expect([...seen.keys()]).toEqual(['inside'])
    expect(seen.get(SECRET)).toBeUndefined()
  },
)

/** Makes `x` a link and a file in turn, without a moment in which there is neither. */
const ALTERNATE = `
  const { renameSync, symlinkSync, writeFileSync } = require('node:fs')
  process.chdir(process.argv.at(-1))
  writeFileSync('x', '')
  console.log('ready')
  for (let end = false; !end; ) {
    for (let n = 0; n < 200; n += 1) {
      symlinkSync('nowhere', 'x.link')
      renameSync('x.link', 'x')
      writeFileSync('x.file', '')
      renameSync('x.file', 'x')
    }
    process.stdin.on('end', () => { end = true })
    process.stdin.resume()
    await new Promise(setImmediate)
  }
`

test.skipIf(!LINUX).each(WAYS)(
  '%s: a manifest and an archive are made while a link becomes a file',
  async (kind) => {
    await using box = await Box.open(kind)
    await using other = Bun.spawn([process.execPath, '-e', ALTERNATE, box.root], {
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    await other.stdout.getReader().read()
    const end = performance.now() + RACE_MS
    for (let round = 0; round < 25 || performance.now() < end; round += 1) {
      const entries = await box.workspace.manifest('', null)
      for (const { path } of entries) expect(path).toStartWith('x')
      for await (const _ of box.workspace.pack()) {
      }
    }
    other.stdin.end()
    expect(await other.exited).toBe(0)
  },
)

test.skipIf(!LINUX).each(WAYS)(
  '%s: no write lands outside while folders and files are swapped for links',
  async (kind) => {
    await using box = await Box.open(kind)
    let written = 0
    const swaps = await race(
      box,
      RACE_MS,
      async (round) => {
        await box.write(['d/f', 'f', 'd/new', 'd/folder/new'][round % 4] ?? 'f', 'inside')
        written += 1
      },
      100,
    )
    expect(swaps).toBeGreaterThan(100)
    expect(written).toBeGreaterThan(100)
    box.expectOutsideUntouched()
  },
)

test.skipIf(!LINUX).each(WAYS)(
  '%s: nothing is removed or counted outside while folders are swapped for links',
  async (kind) => {
    await using box = await Box.open(kind)
    const far = `${box.outside}/f`
    let done = 0
    const swaps = await race(
      box,
      RACE_MS,
      async (round) => {
        if (round % 8 === 0) await box.workspace.remove(round % 16 === 0 ? 'd' : 'f')
        else if (round % 4 === 1) await box.workspace.remove('d/f')
        else await box.workspace.remove('d.folder/none')
        done += 1
      },
      10,
    )
    expect(swaps).toBeGreaterThan(100)
    expect(done).toBeGreaterThan(10)
    expect(await Bun.file(far).text()).toBe(SECRET)
    box.expectOutsideUntouched()
  },
)

test.skipIf(!LINUX).each(WAYS)(
  '%s: no list names and no usage counts a file outside while folders are swapped for links',
  async (kind) => {
    await using box = await Box.open(kind)
    writeFileSync(`${box.outside}/f`, SECRET.padEnd(8 * 1024 * 1024))
    mkdirSync(`${box.outside}/only-outside`)
    writeFileSync(`${box.outside}/only-outside/f`, SECRET)
    const names = new Set<string>()
    let most = 0
    const swaps = await race(box, RACE_MS, async () => {
      for (const name of await box.workspace.list({ all: true })) names.add(name)
      most = Math.max(most, await box.workspace.usage())
    })
    expect(swaps).toBeGreaterThan(100)
    expect([...names].filter((name) => name.includes('only-outside'))).toEqual([])
    expect(names).toContain('d.folder/f')
    expect(most).toBeLessThan(1024 * 1024)
  },
)

test.each(WAYS)(
  '%s: a reader sees the old bytes or the new, never a part, and every file between is whole',
  async (kind) => {
    await using box = await Box.open(kind)
    const sizes = [1, 5_000, 60_000, 300_000]
    const versions = sizes.map((size, index) => new Uint8Array(size).fill(index))
    const version = (n: number) => versions[n % versions.length] ?? new Uint8Array()
    await box.workspace.write('f', version(0))
    let writing = true
    let reads = 0
    const reader = async () => {
      while (writing) {
        const bytes = await box.workspace.read('f')
        if (Buffer.compare(bytes, version(bytes[0] ?? 0)) !== 0) throw new Error('a torn read')
        reads += 1
      }
    }
    const readers = [reader(), reader(), reader()]
    for (let n = 0; n < 200; n += 1)
      await Promise.all([box.workspace.write('f', version(n)), box.workspace.write('f', version(n + 1))])
    writing = false
    await Promise.all(readers)
    expect(reads).toBeGreaterThan(10)
    expect(readdirSync(box.root).filter(isTemporary)).toEqual([])
  },
)

test.each(WAYS)('%s: a folder that a process keeps writing into is removed all the same', async (kind) => {
  await using box = await Box.open(kind)
  mkdirSync(box.at('d/sub'), { recursive: true })
  const script = 'echo ready; i=0; while [ -d d/sub ] && [ $i -lt 100000 ]; do : > d/sub/$i; i=$((i+1)); done'
  await using writer = Bun.spawn(['sh', '-c', script], { cwd: box.root, stdout: 'pipe', stderr: 'ignore' })
  await writer.stdout[Symbol.asyncIterator]().next()
  await box.workspace.remove('d')
  expect(await box.workspace.stat('d')).toBeNull()
  await writer.exited
})

test.each(WAYS)('%s: calls that fail in every way leave no descriptor open', async (kind) => {
  await using box = await Box.open(kind)
  await box.write('a/b/c', 'x')
  for (const path of [
    'a/b/c',
    'a/b',
    'a/b/c/d',
    'a/none',
    '../x',
    'a/../../x',
    '/etc',
    '',
    'x'.repeat(300),
    'a/../a/b/c',
  ]) {
    for (const call of [box.workspace.read(path), box.workspace.stat(path), box.write(path, 'x')])
      await call.catch(() => {})
    expect(await box.leftOpen()).toEqual([])
  }
  await box.workspace.list({ all: true })
  await box.workspace.usage()
  await box.workspace.remove('a')
  expect(await box.leftOpen()).toEqual([])
})
