import { heapStats } from 'bun:jsc'
import { afterEach, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import type { WorkspaceWatch } from '../../src/compute/workspace.ts'
import { attempt, until } from '../support/processes.ts'
import { Box, type Kind, LINUX, WAYS } from './workspace-fixture.ts'

let box: Box
let watch: WorkspaceWatch | undefined
let told: string[]
afterEach(async () => {
  await watch?.close()
  watch = undefined
  await box[Symbol.asyncDispose]()
})

const at = (path: string): string => box.at(path)

/** A workspace with a folder `app/src`. */
const open = async (kind: Kind) => {
  told = []
  box = await Box.open(kind)
  mkdirSync(at('app/src'), { recursive: true })
}

const begin = async () => {
  watch = await box.workspace.watch('app', {
    ignored: { names: ['node_modules', 'dist'], files: /\.log$/, kept: 'dist' },
    onChange: (path) => told.push(path),
    onLimit: () => told.push('the limit'),
  })
}

const heard = (path: string) => until(() => told.includes(path), `a word of ${path}, after ${told}`)

test.each(WAYS)(
  '%s: tells of files that are written, moved into place and removed, in new folders too',
  async (kind) => {
    await open(kind)
    writeFileSync(at('app/there.ts'), '1')
    await begin()
    writeFileSync(at('app/there.ts'), '2')
    await heard('there.ts')
    mkdirSync(at('app/src/deep/er'), { recursive: true })
    writeFileSync(at('app/src/deep/er/new.ts'), '1')
    await heard('src/deep/er/new.ts')
    writeFileSync(at('outside.tmp'), '3')
    renameSync(at('outside.tmp'), at('app/src/moved.ts'))
    await heard('src/moved.ts')
    told = []
    rmSync(at('app/there.ts'))
    await heard('there.ts')
  },
)

test.each(WAYS)('%s: passes over what is ignored, and what links lead to', async (kind) => {
  await open(kind)
  mkdirSync(at('app/node_modules/x'), { recursive: true })
  mkdirSync(at('elsewhere'))
  symlinkSync(at('elsewhere'), at('app/link'))
  await begin()
  writeFileSync(at('app/node_modules/x/a.js'), '1')
  writeFileSync(at('elsewhere/b.ts'), '1')
  writeFileSync(at('app/app.log'), '1')
  mkdirSync(at('app/dist'))
  writeFileSync(at('app/dist/kept.log'), '1')
  await heard('dist/kept.log')
  writeFileSync(at('app/last.ts'), '1')
  await heard('last.ts')
  expect(told.filter((path) => path !== 'last.ts' && !path.startsWith('dist'))).toEqual([])
})

test.each(WAYS)(
  '%s: a folder that is not there, or a link in its place, is refused or watched as itself',
  async (kind) => {
    await open(kind)
    const { workspace } = box
    const ignored = { names: [], files: /$^/, kept: null }
    const options = { ignored, onChange: (path: string) => void told.push(path), onLimit() {} }
    await expect(workspace.watch('nowhere', options)).rejects.toThrow('does not exist')
    mkdirSync(at('../berth-watch-out'), { recursive: true })
    try {
      symlinkSync(at('../berth-watch-out'), at('out'))
      await expect(workspace.watch('out', options)).rejects.toThrow()
    } finally {
      rmSync(at('../berth-watch-out'), { recursive: true, force: true })
    }
  },
)

/** Exchanges a folder and a link as fast as it can (renameat2(2)), until its input ends, for 10 s at most. */
const EXCHANGE = `
  import { dlopen, ptr } from 'bun:ffi'
  const { symbols } = dlopen('libc.so.6', { syscall: { args: ['i64', 'i64', 'ptr', 'i64', 'ptr', 'i64'], returns: 'i64' } })
  const [one, other] = process.argv.slice(-2).map((path) => Buffer.from(path + '\\0'))
  const exchange = () => symbols.syscall(process.arch === 'arm64' ? 276 : 316, -100, ptr(one), -100, ptr(other), 2)
  console.log(Number(exchange()))
  let over = false
  process.stdin.on('end', () => { over = true })
  process.stdin.resume()
  while (!over) {
    for (let n = 0; n < 20_000; n += 1) exchange()
    await new Promise(setImmediate)
  }
`

test.skipIf(!LINUX)(
  'a folder that is exchanged for a link all the time stops nothing, and no name from outside is reported',
  async () => {
    await open('by descriptor')
    for (let index = 0; index < 30; index += 1)
      mkdirSync(`${box.outside}/only-outside-${index}/below`, { recursive: true })
    symlinkSync(box.outside, at('app/link'))
    await using exchange = Bun.spawn([process.execPath, '-e', EXCHANGE, at('app/src'), at('app/link')], {
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const { value } = await exchange.stdout.getReader().read()
    expect(Buffer.from(value ?? []).toString()).toBe('0\n')
    // Each begins and ends although the exchange does not.
    for (let round = 0; round < 10; round += 1) {
      await begin()
      await Bun.sleep(50)
      await watch?.close()
    }
    expect(exchange.exitCode).toBeNull()
    expect(told.filter((path) => path.includes('outside'))).toEqual([])
    exchange.stdin.end()
    expect(await exchange.exited).toBe(0)
  },
)

/** Makes files with long paths and removes them, more than are looked at, but fewer than 10,000 a second, until it is ended. */
const MANY_FILES = `
  import { closeSync, openSync, unlinkSync } from 'node:fs'
  process.chdir(process.argv.at(-1))
  for (let n = 0; ; n += 1) {
    closeSync(openSync('x'.repeat(200) + n, 'w'))
    if (n >= 200) unlinkSync('x'.repeat(200) + (n - 200))
    if (n % 100 === 99) await Bun.sleep(30)
  }
`

/** Returns how many files and directories the kernel watches for this process (proc_pid_fdinfo(5)). */
function watchedByKernel(): number {
  const infos = readdirSync('/proc/self/fdinfo').map((fd) =>
    attempt(() => readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')),
  )
  return infos.join('').split('inotify wd:').length - 1
}

test.skipIf(!LINUX)(
  'changes that come faster than they can be looked at take no memory until they are',
  async () => {
    await open('by descriptor')
    const deep = at(`app${`/${'y'.repeat(200)}`.repeat(15)}`)
    mkdirSync(deep, { recursive: true })
    const unwatched = watchedByKernel()
    await begin()
    const heapMiB = (): number => {
      Bun.gc(true)
      return heapStats().heapSize / 2 ** 20
    }
    const before = heapMiB()
    await using many = Bun.spawn([process.execPath, '-e', MANY_FILES, deep], { stderr: 'inherit' })
    // Ten thousand changes are work, for which a busy machine may take long.
    await until(() => watchedByKernel() === unwatched, 'the watch to pause', 90_000)
    // What comes once it goes on may wait again, up to as many changes.
    many.kill()
    await many.exited
    await until(() => heapMiB() - before < 30, 'what waits to be looked at to be dropped')
    await heard('.')
    writeFileSync(at('app/later.ts'), '1')
    await heard('later.ts')
  },
)

/** Runs a command for which the kernel watches three files at most (inotify(7)). */
const withFewWatches = (...argv: string[]) => [
  ...['unshare', '--user', '--map-root-user', 'sh', '-c'],
  ...['echo 3 > /proc/sys/user/max_inotify_watches && exec "$@"', 'sh', ...argv],
]

/** Watches a workspace, changes its first file, and prints what is reported. */
const WATCH_ONCE = `
  import { writeFileSync } from 'node:fs'
  const [kind, folder, root] = process.argv.slice(-3)
  const { LocalWorkspace } = await import('${import.meta.dir}/../../src/compute/local/workspace.ts')
  const { RemoteWorkspace } = await import('${import.meta.dir}/../../src/compute/remote/workspace.ts')
  const { CalledServer } = await import('${import.meta.dir}/called-server.ts')
  const server = kind === 'through calls' ? await CalledServer.start(folder, root) : null
  const workspace = server
    ? new RemoteWorkspace({ connect: async () => server.client, staging: folder + '/staging' })
    : new LocalWorkspace(root, true)
  const heard = Promise.withResolvers()
  const watch = await workspace.watch('app', {
    ignored: { names: [], files: /$^/, kept: null },
    onChange: (path) => { console.log(path); heard.resolve() },
    onLimit: () => console.log('the limit'),
  })
  writeFileSync(root + '/app/there.ts', '2')
  await heard.promise
  await watch.close()
  await server?.[Symbol.asyncDispose]()
`

test.skipIf(Bun.spawnSync(withFewWatches('true')).exitCode !== 0).each(WAYS)(
  '%s: reports once that the limit of watched files is reached, and goes on with those it has',
  async (kind) => {
    await open(kind)
    for (const name of ['a', 'b', 'c', 'd']) mkdirSync(at(`app/${name}`))
    writeFileSync(at('app/there.ts'), '1')
    const argv = withFewWatches(process.execPath, '-e', WATCH_ONCE, kind, box.folder, box.root)
    const { stdout, stderr } = Bun.spawnSync(argv)
    expect(stderr.toString()).toBe('')
    expect(stdout.toString()).toBe('the limit\nthere.ts\n')
  },
)
