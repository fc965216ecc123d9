/** Writes, copies and removes files so that a crash leaves a whole one or none. */
import {
  chmodSync,
  closeSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join, relative } from 'node:path'
import { BerthError } from '../errors.ts'
import { ifPresent } from '../runtime/if-present.ts'
import { processEnvironment } from '../runtime/process-environment.ts'
import { runHelper } from '../runtime/run-helper.ts'

/** Replaces a file that only its owner may read (mode 0600), whole or not at all. */
export function writePrivate(path: string, content: string | Uint8Array): void {
  const fresh = `${path}.new`
  // A killed berth's file may have another mode, and a planted link may lead anywhere.
  remove(fresh)
  writeFileSync(fresh, content, { mode: 0o600, flag: 'wx' })
  renameSync(fresh, path)
}

/**
 * Creates a file that only its owner may read, if there is none. SQLite gives its files beside it the same rights.
 */
export function makePrivate(path: string): void {
  closeSync(openSync(path, 'a', 0o600))
}

/** Removes a file or a link. Looks first: an exception costs a start more than the file operations around it. */
export function remove(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })) ifPresent(() => unlinkSync(path))
}

const ALL_RIGHTS = 0o700

/**
 * Removes a file or a tree, with any permissions: inaccessible directories, as in Go's module cache, are made
 * accessible first. Links are removed, never followed. A missing path is no error.
 *
 * @throws the system's error
 */
export function removeTree(path: string): void {
  try {
    removeNow(path)
  } catch {
    // A directory without rights is opened. Anything else fails again.
    openDirectories(path)
    removeNow(path)
  }
}

/** Removes a tree as `removeTree` does, in a separate process. */
export async function removeTreeAside(path: string): Promise<void> {
  if (!(await removedBySystem(path))) removeTree(path)
}

/** Workspaces may hold trees of any depth: the system's own rm takes them in one pass. */
async function removedBySystem(path: string): Promise<boolean> {
  try {
    return (
      (await Bun.spawn(['rm', '-rf', '--', path], { stdio: ['ignore', 'ignore', 'ignore'] }).exited) === 0
    )
  } catch {
    // No process can be started: the program is missing, or there are too many processes.
    return false
  }
}

/** Processes that are just ending may still write. */
const removeNow = (path: string): void => rmSync(path, { recursive: true, force: true, maxRetries: 3 })

function openDirectories(path: string): void {
  for (let directories = [path]; directories.length > 0; directories = directories.flatMap(directoriesIn)) {
    for (const dir of directories) openDirectory(dir)
  }
}

function openDirectory(path: string): void {
  const stats = ifPresent(() => lstatSync(path))
  if (stats?.isDirectory() && (stats.mode & ALL_RIGHTS) !== ALL_RIGHTS)
    ifPresent(() => chmodSync(path, stats.mode | ALL_RIGHTS))
}

function directoriesIn(path: string): string[] {
  try {
    const entries = readdirSync(path, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(path, name))
  } catch {
    // Already gone, or a file, whose removal reports errors.
    return []
  }
}

/** Most attempts of a copy during which files vanish. */
const ATTEMPTS = 3

/** Permissions needed to copy a directory and a file. */
const SEARCHABLE = 0o500
const READABLE = 0o400

/** Characters of cp's messages that are read: it writes one for each file that it cannot copy. */
const MESSAGES_LENGTH = 64 * 1024

/** Characters of cp's message that are passed on. */
const MESSAGE_LENGTH = 400

/** A file or directory that was made readable for a copy. */
interface ChangedMode {
  path: string
  copy: string
  /** Its own permission bits. */
  mode: number
}

/**
 * Copies files and directories into a directory, with owners, modes, times and links. Uses the system's cp, which
 * shares blocks if the file system can. Makes unreadable entries readable while it copies.
 *
 * cp names files by their paths. No program that berth does not trust may change them meanwhile: it could replace a
 * directory by a link, and cp would copy what the link leads to.
 *
 * @param signal cancels the copy
 * @throws BerthError if they cannot be copied
 */
export async function copyTrees(paths: readonly string[], dir: string, signal?: AbortSignal): Promise<void> {
  if (paths.length === 0) return
  let changed: ChangedMode[] = []
  try {
    for (let attempt = 1; ; attempt += 1) {
      const failure = signal?.aborted ? 'given up' : await runCopy(paths, dir, signal)
      if (failure === null) return
      if (signal?.aborted) throw copyCancelled()
      const closed = changed.length === 0 && /Permission denied/.test(failure)
      const moving = /No such file or directory|file changed|File exists/.test(failure)
      if (attempt >= ATTEMPTS || !(closed || moving)) throw notCopied(failure)
      for (const path of paths) removeTree(join(dir, basename(path)))
      if (closed) changed = paths.flatMap((path) => makeReadable(path, join(dir, basename(path))))
    }
  } finally {
    // Restores directories after their contents.
    for (const { path, copy, mode } of changed.reverse()) {
      for (const one of [path, copy]) ifPresent(() => chmodSync(one, mode))
    }
  }
}

/**
 * Runs the system's cp.
 *
 * @returns its error message, or null if it succeeded
 */
async function runCopy(
  paths: readonly string[],
  dir: string,
  signal: AbortSignal | undefined,
): Promise<string | null> {
  const decoder = new TextDecoder()
  let messages = ''
  try {
    const { exitCode } = await runHelper(['cp', '-a', '--', ...paths, dir], {
      // Its messages are read.
      env: { ...processEnvironment(), LC_ALL: 'C' },
      onStderr: (chunk) => {
        if (messages.length < MESSAGES_LENGTH) messages += decoder.decode(chunk, { stream: true })
      },
      ...(signal === undefined ? {} : { signal }),
    })
    return exitCode === 0 ? null : messages.trim() || `cp ended with ${exitCode}`
  } catch (error) {
    if (signal?.aborted) return 'given up'
    throw error
  }
}

/** Returns the error of a copy that was cancelled. */
export const copyCancelled = (): BerthError =>
  new BerthError('service_unavailable', 'berth is stopping. Start it again.')

/** Returns the error of a copy that failed. @param message the system's, or that of cp */
export function notCopied(message: string): BerthError {
  const [first = ''] = message.split('\n')
  const remedy = /File name too long|ENAMETOOLONG/.test(message)
    ? 'Remove the directories that are nested too deeply for a path.'
    : 'See that the disk has room, and that servers are not busy writing.'
  return new BerthError('internal_error', `The state could not be copied: ${shortened(first)}. ${remedy}`)
}

/** Shortens a text for a message to its beginning and its end. */
const shortened = (text: string): string =>
  text.length <= MESSAGE_LENGTH
    ? text
    : `${text.slice(0, MESSAGE_LENGTH / 2)}…${text.slice(-MESSAGE_LENGTH / 2)}`

/**
 * Makes entries readable that their owner may not read, outermost first. Leaves links alone. Skips entries that
 * vanish meanwhile.
 */
function makeReadable(root: string, copyOfRoot: string): ChangedMode[] {
  const changed: ChangedMode[] = []
  const left = [root]
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    const stats = ifPresent(() => lstatSync(path))
    if (!stats?.isDirectory() && !stats?.isFile()) continue
    const needed = stats.isDirectory() ? SEARCHABLE : READABLE
    const mode = stats.mode & 0o7777
    if ((mode & needed) !== needed) {
      if (ifPresent(() => chmodSync(path, mode | needed)) === null) continue
      changed.push({ path, copy: join(copyOfRoot, relative(root, path)), mode })
    }
    const names = stats.isDirectory() ? ifPresent(() => readdirSync(path)) : null
    for (const name of names ?? []) left.push(join(path, name))
  }
  return changed
}
