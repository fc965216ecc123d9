/**
 * Compares two ways to know how much storage a server uses: a walk whenever the number is needed
 * (`LocalWorkspace.usage`), and a chokidar watch that is kept on the workspace all the time.
 *
 *     bun scripts/benchmarks/storage.ts [FILES…]        default: 1000 10000 100000
 *
 * Makes the trees in the temporary folder (TMPDIR) and removes them. Each measurement is a process of its own, so that
 * memory figures are its own too.
 */
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { watch } from 'chokidar'
import { LocalWorkspace } from '../../src/compute/local/workspace.ts'

const FILES_PER_FOLDER = 10
/** What a small `npm install` writes. */
const BURST_FILES = 2000
/** A watch that is not ready, or has not caught up, by then is reported as such. */
const DEADLINE_MS = 120_000

interface WalkResult {
  wallMs: number
  cpuMs: number
  pauseMs: number
  rssMb: number
}

interface WatchResult {
  readyMs: number | null
  readyPauseMs: number
  rssMb: number
  watches: number
  burstCpuMs: number
  burstMissed: number
}

const [mode, folder = ''] = process.argv.slice(2)
if (mode === 'walk') console.log(JSON.stringify(await measureWalk(folder)))
else if (mode === 'watch') console.log(JSON.stringify(await measureWatch(folder)))
else if (mode === 'burst') makeTree(join(folder, 'node_modules'), BURST_FILES)
else await main(process.argv.slice(2).map(Number))

async function main(sizes: number[]): Promise<void> {
  const rows: Record<string, string | number>[] = []
  // Ctrl-C ends the measurement under way, which fails and so has its tree removed.
  process.once('SIGINT', () => {})
  for (const files of sizes.length > 0 ? sizes : [1000, 10_000, 100_000]) {
    const root = mkdtempSync(join(tmpdir(), 'berth-bench-'))
    try {
      makeTree(root, files)
      const walk = (await self('walk', root)) as WalkResult
      const kept = (await self('watch', root)) as WatchResult
      rows.push({
        files,
        'walk ms': walk.wallMs,
        'walk CPU ms': walk.cpuMs,
        'walk pause ms': walk.pauseMs,
        'walk RSS MB': walk.rssMb,
        'watch ready ms': kept.readyMs ?? `> ${DEADLINE_MS}`,
        'watch pause ms': kept.readyPauseMs,
        'watch RSS MB': kept.rssMb,
        'inotify watches': kept.watches,
        'burst CPU ms': kept.burstCpuMs,
        'burst missed': kept.burstMissed,
      })
    } finally {
      await Bun.spawn(['rm', '-rf', root]).exited
    }
  }
  console.table(rows)
  console.log(
    `walk: LocalWorkspace.usage(), median of 5, cache warm. pause: the longest time the event loop was held.\n` +
      `watch: chokidar with sizes, kept on the same tree. burst: ${BURST_FILES} files written by another process;\n` +
      `CPU the watch spent until it knew all of them (a walk instead costs "walk CPU" once, after the command).`,
  )
}

async function self(name: string, root: string): Promise<unknown> {
  await using child = Bun.spawn([process.execPath, import.meta.path, name, root], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error(`the ${name} measurement failed`)
  return text === '' ? null : JSON.parse(text)
}

function makeTree(root: string, files: number): void {
  for (let made = 0; made < files; made += FILES_PER_FOLDER) {
    const number = made / FILES_PER_FOLDER
    const below = join(root, `a${number % 20}`, `b${Math.floor(number / 20) % 50}`, `c${number}`)
    mkdirSync(below, { recursive: true })
    for (let file = 0; file < FILES_PER_FOLDER; file += 1)
      closeSync(openSync(join(below, `file${file}.js`), 'w'))
    writeFileSync(join(below, 'file0.js'), 'export {}')
  }
}

async function measureWalk(root: string): Promise<WalkResult> {
  const workspace = new LocalWorkspace(root)
  const before = residentMb()
  const walls: number[] = []
  const cpus: number[] = []
  const pauses: number[] = []
  for (let round = 0; round < 5; round += 1) {
    const pause = observePauses()
    const cpu = process.cpuUsage()
    const start = performance.now()
    await workspace.usage()
    walls.push(performance.now() - start)
    cpus.push(cpuMs(cpu))
    pauses.push(pause())
  }
  return { wallMs: median(walls), cpuMs: median(cpus), pauseMs: median(pauses), rssMb: residentMb() - before }
}

async function measureWatch(root: string): Promise<WatchResult> {
  const before = residentMb()
  const pause = observePauses()
  const start = performance.now()
  const sizes = new Map<string, number>()
  const watcher = watch(root, { alwaysStat: true, followSymlinks: false })
  watcher.on('all', (_event, path, stats) => sizes.set(path, (stats?.blocks ?? 0) * 512))
  const ready = await until((done) => watcher.once('ready', () => done()))
  const result: WatchResult = {
    readyMs: ready ? Math.round(performance.now() - start) : null,
    readyPauseMs: pause(),
    rssMb: residentMb() - before,
    watches: inotifyWatches(),
    burstCpuMs: 0,
    burstMissed: 0,
  }
  const known = () =>
    [...sizes.keys()].filter((path) => path.includes('/node_modules/') && path.endsWith('.js')).length
  const cpu = process.cpuUsage()
  await self('burst', root)
  await until((done) => {
    if (known() >= BURST_FILES) done()
    watcher.on('all', () => sizes.size % 50 === 0 && known() >= BURST_FILES && done())
    // Events that never come must not hold the bench up for long.
    setTimeout(done, 15_000).unref()
  })
  result.burstCpuMs = cpuMs(cpu)
  result.burstMissed = BURST_FILES - known()
  await watcher.close()
  return result
}

/** Waits for a signal; false when the deadline passes before. */
async function until(subscribe: (done: () => void) => void): Promise<boolean> {
  return await new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), DEADLINE_MS)
    subscribe(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}

/** Starts to look for times when the event loop is held; the result ends it and tells the longest, ms. */
function observePauses(): () => number {
  let longest = 0
  let last = performance.now()
  const look = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
  }
  const timer = setInterval(look, 1)
  return () => {
    look()
    clearInterval(timer)
    return Math.round(longest)
  }
}

/** Watches this process holds with the kernel, on Linux. */
function inotifyWatches(): number {
  let watches = 0
  for (const descriptor of process.platform === 'linux' ? readdirSync('/proc/self/fdinfo') : []) {
    try {
      watches += readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8').match(/^inotify /gm)?.length ?? 0
    } catch {
      // The descriptor that read the folder is closed again.
    }
  }
  return watches
}

function residentMb(): number {
  Bun.gc(true)
  return Math.round(process.memoryUsage.rss() / 1024 / 1024)
}

function cpuMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since)
  return Math.round((user + system) / 1000)
}

function median(values: number[]): number {
  return Math.round(values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN)
}
