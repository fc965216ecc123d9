import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyTree } from '../../src/compute/local/copy-tree.ts'
import { pinRoot } from '../../src/compute/local/pinned.ts'
import { stateName, temporaryName } from '../../src/compute/local/temporary-file.ts'
import { LocalWorkspace } from '../../src/compute/local/workspace.ts'
import { Snapshots } from '../../src/testing/snapshots/snapshots.ts'

const LINUX = process.platform === 'linux'
const SECRET = 'the secret of the host'

let folder = ''
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'berth-copy-')))
})
afterEach(() => {
  Bun.spawnSync(['chmod', '-R', 'u+rwX', folder])
  rmSync(folder, { recursive: true, force: true })
})

const at = (path: string): string => join(folder, path)

/** A tree with modes, names of files, links, owners, times to the millisecond and sizes. */
const listing = (root: string): string =>
  Bun.spawnSync(['sh', '-c', 'find . -mindepth 1 -printf "%P|%M|%n|%l|%U|%T@|%s\\n" | sort'], { cwd: root })
    .stdout.toString('latin1')
    .replaceAll(/(\.\d{3})\d+\|/g, '$1|')

async function copied(): Promise<string> {
  mkdirSync(at('copy'))
  using root = pinRoot(at('tree'), LINUX)
  await copyTree(root, at('copy'))
  return at('copy')
}

test('a copy has the modes, times, links, holes and every name of a tree, closed ones too', async () => {
  mkdirSync(at('tree/d/empty'), { recursive: true })
  writeFileSync(at('tree/d/run'), '#!/bin/sh\n', { mode: 0o755 })
  writeFileSync(at('tree/large'), Buffer.alloc(3_000_000, 'abc'))
  linkSync(at('tree/large'), at('tree/d/same'))
  symlinkSync('../large', at('tree/d/link'))
  symlinkSync('/etc/passwd', at('tree/out'))
  if (LINUX) {
    writeFileSync(Buffer.concat([Buffer.from(`${at('tree/d')}/`), Buffer.from([0xff, 0xfe])]), 'raw')
    symlinkSync(Buffer.from([0xfd]), at('tree/d/raw-link'))
  }
  writeFileSync(at('tree/holes'), 'begin')
  truncateSync(at('tree/holes'), 2 ** 31)
  Bun.spawnSync(['sh', '-c', 'printf end >> holes'], { cwd: at('tree') })
  writeFileSync(at('tree/secret'), 's', { mode: 0o000 })
  mkdirSync(at('tree/closed'))
  writeFileSync(at('tree/closed/file'), 'f')
  utimesSync(at('tree/large'), 1_234_567_890.125, 1_234_567_890.125)
  chmodSync(at('tree/closed'), 0o000)
  chmodSync(at('tree/d/empty'), 0o500)
  utimesSync(at('tree/d'), 1_000_000_000, 1_000_000_000)
  const before = listing(at('tree'))
  const copy = await copied()
  expect(listing(at('tree'))).toBe(before)
  expect(listing(copy)).toBe(before)
  expect(readFileSync(join(copy, 'large')).equals(readFileSync(at('tree/large')))).toBe(true)
  expect(lstatSync(join(copy, 'd/same')).ino).toBe(lstatSync(join(copy, 'large')).ino)
  expect(Bun.spawnSync(['tail', '-c', '4', join(copy, 'holes')]).stdout.toString()).toBe('\0end')
  expect(lstatSync(join(copy, 'holes')).blocks).toBeLessThan(1000)
})

test('a copy leaves out pipes, sockets and what berth prepares', async () => {
  mkdirSync(at('tree'))
  Bun.spawnSync(['mkfifo', at('tree/pipe')])
  using socket = Bun.listen({ unix: at('tree/socket'), socket: { data() {} } })
  writeFileSync(at(`tree/${temporaryName()}`), 'not whole')
  writeFileSync(at('tree/file'), 'f')
  expect(readdirSync(await copied())).toEqual(['file'])
  expect(existsSync(socket.unix)).toBe(true)
})

test('a snapshot holds what is kept for servers elsewhere, and no push that is under way', async () => {
  const kept = stateName()
  for (const name of [kept, temporaryName()]) {
    mkdirSync(at(`data/staged/${name}/caches`), { recursive: true })
    writeFileSync(at(`data/staged/${name}/caches/file`), name)
  }
  await new Snapshots(at('data')).save(SNAPSHOT, (path) => writeFileSync(path, ''))
  expect(readdirSync(at('data/snapshots/s/staged'))).toEqual([kept])
  expect(readdirSync(at(`data/snapshots/s/staged/${kept}/caches`))).toEqual(['file'])
})

// A hostile command keeps running although berth has stopped it: it has the kernel send it SIGCONT.
test.skipIf(!LINUX)(
  'a snapshot holds nothing from outside while folders are swapped for links',
  async () => {
    const workspace = at('data/servers/srv_a/workspace')
    mkdirSync(workspace, { recursive: true })
    mkdirSync(at('outside'))
    writeFileSync(at('outside/f'), SECRET)
    await using swapping = Bun.spawn([process.execPath, '-e', SWAP, workspace, at('outside')], {
      stdout: 'pipe',
      stderr: 'inherit',
    })
    await swapping.stdout.getReader().read()
    const snapshots = new Snapshots(at('data'))
    for (let round = 0; round < 3; round += 1) {
      await snapshots.save(SNAPSHOT, (path) => writeFileSync(path, ''))
      const found = Bun.spawnSync(['grep', '-rlF', SECRET, at('data/snapshots/s/servers')]).stdout.toString()
      expect(found).toBe('')
      // Not so when it is swapped twice while it is looked at.
      expect(readdirSync(at('data/snapshots/s/servers/srv_a/workspace')).length).toBeGreaterThan(PAIRS)
    }
  },
  120_000,
)

/** What a snapshot says of itself. */
const SNAPSHOT = {
  ...{ name: 's', created_at: '', version: '', schema: 0 },
  clock: { frozenAt: null, offsetMs: 0 } as never,
}

const PAIRS = 100

/** Exchanges folders and links that lead out, as fast as it can, until it is killed; says so when it begins. */
const SWAP = `
const { mkdirSync, symlinkSync, writeFileSync } = require('node:fs')
const { dlopen, ptr } = require('bun:ffi')
const [root, outside] = process.argv.slice(1)
const { syscall } = dlopen('libc.so.6', {
  syscall: { args: ['i64', 'i64', 'ptr', 'i64', 'ptr', 'i64'], returns: 'i64' },
}).symbols
const RENAMEAT2 = process.arch === 'arm64' ? 276 : 316
const pairs = Array.from({ length: ${PAIRS} }, (_, n) => {
  mkdirSync(root + '/d' + n)
  writeFileSync(root + '/d' + n + '/f', 'inside')
  symlinkSync(outside, root + '/l' + n)
  return ['d', 'l'].map((name) => Buffer.from(root + '/' + name + n + '\\0'))
})
console.log('begun')
for (;; Bun.sleepSync(1)) for (const [d, l] of pairs) syscall(RENAMEAT2, -100, ptr(d), -100, ptr(l), 2)
`

/** Reserves a file for as long as it runs: a program that opens it waits for this one, by default 45 s (fcntl(2)). */
const RESERVE = `
  import { dlopen } from 'bun:ffi'
  import { openSync } from 'node:fs'
  const { symbols } = dlopen('libc.so.6', { fcntl: { args: ['int', 'int', 'int'], returns: 'int' } })
  const [F_SETSIG, F_SETLEASE, F_WRLCK] = [10, 1024, 1]
  process.on('SIGCHLD', () => {})
  const fd = openSync(process.argv.at(-1), 'r+')
  symbols.fcntl(fd, F_SETSIG, 17)
  console.log(symbols.fcntl(fd, F_SETLEASE, F_WRLCK))
  process.stdin.resume()
`

test.skipIf(!LINUX).each([10, 100_000])(
  'a file of %d bytes that a program has reserved keeps neither a copy nor a reader waiting',
  async (size) => {
    mkdirSync(at('tree'))
    writeFileSync(at('tree/f'), Buffer.alloc(size, 'f'))
    await using holder = Bun.spawn([process.execPath, '-e', RESERVE, at('tree/f')], {
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const { value } = await holder.stdout.getReader().read()
    expect(Buffer.from(value ?? []).toString()).toBe('0\n')
    const begun = performance.now()
    await expect(copied()).rejects.toThrow('A program of a server has reserved "f"')
    await expect(new LocalWorkspace(at('tree')).read('f')).rejects.toMatchObject({ fault: 'not_a_file' })
    expect(await new LocalWorkspace(at('tree')).manifest('', null)).toEqual([])
    expect(performance.now() - begun).toBeLessThan(20_000)
    holder.stdin.end()
    expect(await holder.exited).toBe(0)
  },
)
