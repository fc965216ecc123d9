/**
 * Compares two ways to know how much storage a server uses: a walk whenever the number is needed
 * (`LocalWorkspace.usage`), and a chokidar watch that is kept on the workspace all the time. Each measurement is a process of
 * its own, so that figures of memory are its own too.
 */
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { watch } from 'chokidar'
import { LocalWorkspace } from '../../src/compute/local/workspace.ts'
import { temporaryDirectory } from './instance.ts'
import { median, ms, print, time } from './measure.ts'

const SIZES = [1_000, 10_000, 100_000]
const FILES_PER_DIRECTORY = 10

/** What a way takes, in milliseconds, and what it holds afterwards. */
interface Taken {
  readonly ms: number
  /** The longest time for which the event loop was held. */
  readonly pauseMs: number
  readonly megabytes: number
  readonly watches: number
}

/** Measures both ways for trees of 1,000, 10,000 and 100,000 files. */
export async function benchStorage(): Promise<void> {
  const rows = []
  for (const files of SIZES) {
    using tree = temporaryDirectory()
    makeTree(tree.path, files)
    for (const way of ['walk', 'watch']) {
      const taken = (await inProcess(way, tree.path)) as Taken
      const held = `${taken.megabytes} MB${taken.watches > 0 ? ` and ${taken.watches} kernel watches` : ''}`
      rows.push({
        what: `${way === 'walk' ? 'a walk' : 'a watch until it is ready'}, ${files.toLocaleString('en')} files`,
        measured: ms(taken.ms),
        baseline: `in pieces of at most ${ms(taken.pauseMs)}; takes ${held}`,
      })
    }
  }
  print('What a server stores', rows)
}

async function inProcess(way: string, tree: string): Promise<unknown> {
  const child = Bun.spawn([process.execPath, import.meta.path, way, tree], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return JSON.parse(await child.stdout.text())
}

function makeTree(root: string, files: number): void {
  for (let number = 0; number < files / FILES_PER_DIRECTORY; number += 1) {
    const below = join(root, `a${number % 20}`, `b${Math.floor(number / 20) % 50}`, `c${number}`)
    mkdirSync(below, { recursive: true })
    for (let file = 0; file < FILES_PER_DIRECTORY; file += 1)
      closeSync(openSync(join(below, `file${file}.js`), 'w'))
  }
}

async function walk(root: string): Promise<Taken> {
  const workspace = new LocalWorkspace(root)
  const before = residentMegabytes()
  const taken: number[] = []
  const pauses: number[] = []
  for (let round = 0; round < 5; round += 1) {
    const longestPause = observePauses()
    taken.push(await time(() => workspace.usage()))
    pauses.push(longestPause())
  }
  return { ms: median(taken), pauseMs: median(pauses), megabytes: residentMegabytes() - before, watches: 0 }
}

async function keepWatch(root: string): Promise<Taken> {
  const before = residentMegabytes()
  const longestPause = observePauses()
  const sizes = new Map<string, number>()
  const watcher = watch(root, { alwaysStat: true, followSymlinks: false })
  watcher.on('all', (_event, path, stats) => sizes.set(path, (stats?.blocks ?? 0) * 512))
  const taken = await time(() => new Promise<void>((resolve) => watcher.once('ready', () => resolve())))
  const pauseMs = longestPause()
  const held = residentMegabytes() - before
  const watches = inotifyWatches()
  await watcher.close()
  return { ms: taken, pauseMs, megabytes: held, watches }
}

/** Begins to look for times when the event loop is held; the result ends it and returns the longest, in milliseconds. */
function observePauses(): () => number {
  let longest = 0
  let last = performance.now()
  const look = (): void => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
  }
  const timer = setInterval(look, 1)
  return () => {
    look()
    clearInterval(timer)
    return longest
  }
}

/** Returns the number of watches that this process holds with the kernel. */
function inotifyWatches(): number {
  let watches = 0
  for (const descriptor of readdirSync('/proc/self/fdinfo')) {
    try {
      watches += readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8').match(/^inotify /gm)?.length ?? 0
    } catch {
      // The descriptor that read the directory is closed again.
    }
  }
  return watches
}

function residentMegabytes(): number {
  Bun.gc(true)
  return Math.round(process.memoryUsage.rss() / 1e6)
}

if (import.meta.main) {
  const [way, directory = ''] = process.argv.slice(2)
  console.log(JSON.stringify(await (way === 'walk' ? walk : keepWatch)(directory)))
}
