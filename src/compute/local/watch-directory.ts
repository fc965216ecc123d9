import { realpathSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { FSWatcher } from 'chokidar'
import { codeOf } from '../../runtime/error-info.ts'
import { Pace } from '../../runtime/pace.ts'
import type { WatchFilter, WatchOptions, WorkspaceWatch } from '../workspace.ts'
import { canSkip, DirectoryChain } from './directories.ts'
import type { PinnedEntry } from './pinned.ts'

/** The directory to watch. */
export interface WatchedDirectory {
  dir: PinnedEntry
  /** Reports whether a path below the directory is in the workspace, links not followed. */
  has(path: string): boolean
}

/**
 * Reports changes below an existing directory of a workspace. Links are not followed, so nothing the server plants
 * leads the watch outside.
 *
 * Uses chokidar, loaded with the first watch, because systems differ in how they report renames, atomic saves and new
 * directories. It names files by their paths, so a program that swaps a directory for a link while chokidar looks at it can
 * have it look at one outside. No name from there is reported.
 */
export async function watchTree(
  { dir, has }: WatchedDirectory,
  { ignored, onChange, onLimit }: WatchOptions,
): Promise<WorkspaceWatch> {
  const root = realpathSync(dir.path)
  const known = await listKnown(dir, ignored)
  /** Reports a path that is known to be or to have been in the workspace, or the next directory above that is. */
  const report = (path: string): void => {
    for (let at = path; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('/')))) {
      const isThere = has(at)
      if (!isThere && !known.has(at)) continue
      if (!isThere) known.delete(at)
      else if (known.size < MAX_KNOWN) known.add(at)
      onChange(at)
      return
    }
    onChange('.')
  }
  const { watch } = await import('chokidar')
  const watching = new PacedWatch(
    () =>
      watch(root, {
        followSymlinks: false,
        ignoreInitial: true,
        ignorePermissionErrors: true,
        // Reports a file once it is in place, not while it is moved.
        atomic: true,
        ignored: (path) => path !== root && isIgnored(ignored, relative(root, path)),
      }),
    {
      onChange: (path) => report(path === '' ? '' : relative(root, path)),
      onLimit,
      isIgnored: (path) => isIgnored(ignored, relative(root, path)),
    },
  )
  await watching.start()
  return { close: () => watching.close() }
}

/**
 * Most paths whose removal is reported as such; that of others is reported as a change of their directory.
 * @bound program
 */
const MAX_KNOWN = 200_000

/** Lists what is in a directory before it is watched, by paths relative to it. */
async function listKnown(dir: PinnedEntry, ignored: WatchFilter): Promise<Set<string>> {
  const known = new Set<string>()
  const pace = new Pace()
  using chain = new DirectoryChain(dir)
  const frames = [{ path: '', entries: await chain.list(dir) }]
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    if (pace.due) await pace.rest()
    const entry = frame.entries.pop()
    if (entry === undefined) {
      frames.pop()
      if (frames.length > 0) chain.leave()
      continue
    }
    const path = frame.path === '' ? String(entry.name) : `${frame.path}/${entry.name}`
    if (isIgnored(ignored, path)) continue
    if (known.size >= MAX_KNOWN) break
    known.add(path)
    if (entry.kind !== 'directory') continue
    const { depth } = chain
    try {
      frames.push({ path, entries: await chain.list(chain.enter(entry.name)) })
    } catch (error) {
      if (chain.depth > depth) chain.leave()
      if (!canSkip(error)) throw error
    }
  }
  return known
}

function isIgnored({ names, files, kept }: WatchFilter, path: string): boolean {
  if (kept !== null && (path === kept || path.startsWith(`${kept}/`))) return false
  return path.split('/').some((name) => names.includes(name)) || files.test(path)
}

/**
 * Changes that may come at once, and how many a second may come for long. A program that makes more would keep berth from
 * everything else. Chokidar looks at about 75 files a second that are made and removed again; those that wait take memory, with
 * long paths 16 KiB each.
 * @bound program
 */
const MAX_CHANGES = 10_000
const MAX_PER_SECOND = 100

/** Milliseconds after which a directory is watched again that had more; at most, if it has more each time. */
const PAUSE_MS = 2_000
const MAX_PAUSE_MS = 60_000

/** The codes with which the kernel refuses one more watch, or one more inotify instance (inotify_add_watch(2)). */
const LIMIT_CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EMFILE', 'ENFILE'])

/** Handlers of a `PacedWatch`, with paths as chokidar has them. */
interface WatchHandlers extends Pick<WatchOptions, 'onChange' | 'onLimit'> {
  /** Reports whether changes of a path are not looked at, so that any number may come. */
  isIgnored(path: string): boolean
}

/**
 * A watch that pauses when there are too many changes: the system reports each, and as long as more come than berth takes,
 * nothing else gets a turn. Afterwards one change is reported in place of those that were missed. Each pause is longer than the
 * one before, until the program makes less.
 */
class PacedWatch {
  readonly #open: () => FSWatcher
  readonly #handlers: WatchHandlers
  #hasReportedLimit = false
  #watcher: FSWatcher | null = null
  #timer: Timer | undefined
  #isClosed = false
  /** Changes of late: each adds one, each second takes some off. */
  #changes = 0
  #countedAt = performance.now()
  #startedAt = 0
  #pauseMs = PAUSE_MS / 2

  constructor(open: () => FSWatcher, handlers: WatchHandlers) {
    this.#open = open
    this.#handlers = handlers
  }

  /** Resolves when changes are reported. */
  async start(): Promise<void> {
    const watcher = this.#open()
    this.#watcher = watcher
    this.#changes = 0
    this.#startedAt = performance.now()
    const ready = Promise.withResolvers<void>()
    watcher.on('ready', ready.resolve)
    watcher.on('error', (error) => {
      // Others are of files that change while they are looked at.
      if (LIMIT_CODES.has(codeOf(error) ?? '')) this.#reportLimit()
      ready.resolve()
    })
    watcher.on('raw', (_event, path, details) => {
      const { watchedPath } = details as { watchedPath: string }
      if (path !== null && this.#handlers.isIgnored(join(watchedPath, path))) return
      if (!this.#isTooMuch()) return
      this.#pause()
      ready.resolve()
    })
    watcher.on('all', (_event, path) => this.#handlers.onChange(path))
    await ready.promise
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#watcher?.close()
  }

  #reportLimit(): void {
    if (this.#hasReportedLimit) return
    this.#hasReportedLimit = true
    this.#handlers.onLimit()
  }

  #isTooMuch(): boolean {
    const now = performance.now()
    const passed = (now - this.#countedAt) / 1_000
    this.#countedAt = now
    this.#changes = Math.max(0, this.#changes - passed * MAX_PER_SECOND) + 1
    return this.#changes > MAX_CHANGES
  }

  #pause(): void {
    const watcher = this.#watcher
    if (watcher === null) return
    this.#watcher = null
    // What it still reports after that is one change more.
    void watcher.close().catch(() => {})
    const hasRested = performance.now() - this.#startedAt > MAX_PAUSE_MS
    this.#pauseMs = hasRested ? PAUSE_MS : Math.min(this.#pauseMs * 2, MAX_PAUSE_MS)
    this.#timer = setTimeout(() => {
      if (this.#isClosed) return
      // Chokidar reports what it cannot watch as an event. A change while it looks around is one of those that were missed.
      void this.start().then(() => this.#handlers.onChange(''))
    }, this.#pauseMs)
    this.#timer.unref()
  }
}
