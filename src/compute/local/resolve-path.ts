import { mkdirSync, readlinkSync } from 'node:fs'
import { codeOf } from '../../runtime/error-info.ts'
import { ComputeError } from '../sandbox.ts'
import { WorkspaceError } from '../workspace.ts'
import { childPath, type PinnedEntry, pinChild, pinRoot } from './pinned.ts'
import {
  cancelParents,
  invalid,
  missing,
  notAFile,
  outside,
  parseLink,
  parseWorkspacePath,
  quote,
  type Route,
} from './workspace-path.ts'

/** As many as Linux follows in one path. @bound system */
const MAX_LINKS = 40
/** Limits the cost of one path. The longest path without links has half as many names. @bound program */
const MAX_STEPS = 5_000

/** A workspace's directory, and whether entries are pinned by descriptor (Linux) or by checked path. */
export interface WorkspaceRoot {
  /** Absolute path. */
  path: string
  byDescriptor: boolean
}

/**
 * Pins a workspace's own directory, which is no link: berth makes a directory, and a link in a data directory that came
 * from elsewhere could lead to any other. The caller disposes of it.
 *
 * @throws ComputeError if there is none: berth makes it with the server, so someone else removed it
 */
export function pinWorkspace({ path, byDescriptor }: WorkspaceRoot): PinnedEntry {
  try {
    return pinRoot(path, byDescriptor, false)
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) throw error
    throw workspaceGone(path, { cause: error })
  }
}

/** Returns the failure of a server whose files someone else removed. */
export const workspaceGone = (path: string, options?: ErrorOptions): ComputeError =>
  new ComputeError(
    `The server's files are gone: there is no directory ${path}. Put it back, delete the server, or give it an empty one: berth servers recover.`,
    options,
  )

/** The result of walking a path: a name in a pinned directory, and the entry of that name. */
export interface ResolvedPath extends Disposable {
  parent: PinnedEntry
  /** Empty for the workspace's own directory; then `parent` and `entry` are that directory. */
  name: string
  entry: PinnedEntry | null
  /** Whether the path, or the link it ends in, ends with `/`, so it can only name a directory. */
  mustBeDirectory: boolean
}

/** How to treat the path's last name, and missing directories before it. */
export interface ResolveOptions {
  /** Follow a link that the path ends in. Links before it are followed always. */
  follow: boolean
  /** Make missing directories on the way. */
  makeParents?: boolean
}

/**
 * Walks a path name by name from the workspace's directory. Each step is relative to the pinned directory before it
 * and follows no link. A link's target is read and walked by the same rules, so the walk stays inside even if entries
 * are swapped meanwhile.
 *
 * `..` never goes to the kernel, because the parent of a moved directory may be outside. The walk starts again at the
 * root with the names so far except the last, which needs two descriptors for a path of any depth; a stack would need
 * one for each name.
 *
 * The calls are synchronous on purpose: each takes 2–5 µs, a turn through the thread pool about 100.
 *
 * Throws `WorkspaceError` `outside`, `missing` (a directory on the way), `not_a_file`, `invalid`, and as `pinWorkspace`
 * does. The caller disposes of the result.
 */
export function resolvePath(root: WorkspaceRoot, path: string, options: ResolveOptions): ResolvedPath {
  let { names: ahead, mustBeDirectory } = parseWorkspacePath(path)
  let walked: string[] = []
  let links = 0
  let dir = pinWorkspace(root)
  const enter = (next: PinnedEntry) => {
    dir[Symbol.dispose]()
    dir = next
  }
  const beginAgain = (names: string[]) => {
    enter(pinWorkspace(root))
    walked = []
    ahead = names
  }
  const countLink = () => {
    links += 1
    if (links > MAX_LINKS)
      throw new WorkspaceError(
        'not_a_file',
        `${quote(path)} runs through too many symbolic links, or a loop of them.`,
      )
  }

  try {
    for (let step = 0; step < MAX_STEPS; step += 1) {
      const [name, ...rest] = ahead
      if (name === undefined) {
        if (walked.length > 0) beginAgain(walked)
        else return resolved(dir, '', dir, true)
        continue
      }
      if (name === '..') {
        if (walked.length === 0) throw outside(path)
        beginAgain([...walked.slice(0, -1), ...rest])
        continue
      }
      const entry = tryPin(dir, name, path)
      if (entry === null) {
        if (rest.includes('..')) ahead = cancelParents(ahead)
        else if (rest.length === 0) return resolved(dir, name, null, mustBeDirectory)
        else if (options.makeParents) makeDirectory(dir, name, path)
        else throw missing(path)
        continue
      }
      if (entry.stats.isSymbolicLink() && (rest.length > 0 || options.follow)) {
        entry[Symbol.dispose]()
        countLink()
        const route = linkRoute(root, dir, name, path)
        if (route === null) continue
        if (rest.length === 0) mustBeDirectory ||= route.mustBeDirectory
        if (route.absolute) beginAgain([...route.names, ...rest])
        else ahead = [...route.names, ...rest]
        continue
      }
      if (rest.length === 0) return resolved(dir, name, entry, mustBeDirectory)
      if (!entry.stats.isDirectory()) {
        entry[Symbol.dispose]()
        throw new WorkspaceError('not_a_file', `${quote([...walked, name].join('/'))} is not a directory.`)
      }
      enter(entry)
      walked.push(name)
      ahead = rest
    }
    throw invalid(path, 'takes too many steps')
  } catch (error) {
    dir[Symbol.dispose]()
    throw error
  }
}

function resolved(
  parent: PinnedEntry,
  name: string,
  entry: PinnedEntry | null,
  mustBeDirectory: boolean,
): ResolvedPath {
  return {
    parent,
    name,
    entry,
    mustBeDirectory,
    [Symbol.dispose]() {
      parent[Symbol.dispose]()
      entry?.[Symbol.dispose]()
    },
  }
}

/** Pins an entry; returns null if there is none. */
function tryPin(dir: PinnedEntry, name: string, path: string): PinnedEntry | null {
  try {
    return pinChild(dir, name)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw toWorkspaceError(error, path)
  }
}

/** Returns the link's target as a route, or null if the entry is no longer a link. */
function linkRoute(
  root: WorkspaceRoot,
  dir: PinnedEntry,
  name: string,
  path: string,
): (Route & { absolute: boolean }) | null {
  let target: string
  try {
    target = readlinkSync(childPath(dir, name), 'utf8')
  } catch (error) {
    const code = codeOf(error)
    if (code === 'EINVAL' || code === 'ENOENT') return null
    throw error
  }
  if (target.includes('\uFFFD'))
    throw new WorkspaceError('not_a_file', `${quote(path)} runs through a link whose target is not UTF-8.`)
  const route = parseLink(target, root.path)
  if (route === null) throw outside(path)
  return route
}

function makeDirectory(dir: PinnedEntry, name: string, path: string): void {
  try {
    mkdirSync(childPath(dir, name), 0o755)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw toWorkspaceError(error, path)
  }
}

/** Turns a system error that the path or the disk caused into a `WorkspaceError`; returns other errors unchanged. */
export function toWorkspaceError(error: unknown, path: string): unknown {
  switch (codeOf(error)) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new WorkspaceError(
        'disk_full',
        `The disk is full: ${quote(path)} was not written. Free space on the machine that has the server's files.`,
      )
    case 'EFBIG':
      return new WorkspaceError(
        'disk_full',
        `${quote(path)} is larger than a file of the server may be. Write less, or use a larger tier.`,
      )
    case 'ENAMETOOLONG':
      return invalid(path, 'is too long')
    case 'EACCES':
    case 'EPERM':
      return new WorkspaceError(
        'not_a_file',
        `The mode of ${quote(path)}, or of a directory on the way, forbids it. Change it with chmod.`,
      )
    case 'EAGAIN':
      return new WorkspaceError(
        'not_a_file',
        `A program has reserved ${quote(path)} (a lease, fcntl(2)). End the program, then try again.`,
      )
    case 'EISDIR':
    case 'ENOTDIR':
    case 'ELOOP':
    case 'ENXIO':
      return notAFile(path)
    default:
      return error
  }
}
