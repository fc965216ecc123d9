import { mkdirSync, readlinkSync } from 'node:fs'
import { WorkspaceError } from '../workspace.ts'
import { cancelParents, invalid, outside, parseLink, parsePath, quote, type Route } from './path.ts'
import { childPath, type PinnedEntry, pinChild, pinRoot, systemCode } from './pinned.ts'

/** As many as Linux follows in one path. */
const MAX_LINKS = 40
/** Bounds what one path can cost; the longest straight path has half as many names. */
const MAX_STEPS = 5_000

/** A workspace's folder, and whether entries are pinned by descriptor (Linux) or by checked path. */
export interface Jail {
  root: string
  byDescriptor: boolean
}

/** Where a path leads: a name in a pinned folder, and what stands there. */
export interface Place extends Disposable {
  parent: PinnedEntry
  /** Empty where the workspace's own folder is meant; `parent` and `entry` are that folder then. */
  name: string
  entry: PinnedEntry | null
  /** Only a folder can be meant: the path, or the link it ends in, closes with a `/`. */
  folderMeant: boolean
}

/** What to do at the path's last name and at missing folders before it. */
export interface LocateOptions {
  /** Follow a link that the path ends in. Links before it are followed always. */
  follow: boolean
  /** Make missing folders on the way. */
  makeParents?: boolean
}

/**
 * Walks a path name by name from the workspace's folder; each step is taken relative to the pinned
 * folder before it and follows no link. A link's target is read and walked by the same rules, so
 * nothing that is swapped meanwhile leads out: what the walk reaches is inside, whatever order things happen in.
 *
 * `..` never goes to the kernel, whose parent of a moved folder may be outside. It begins again at the root with the
 * names so far but one, which needs two descriptors for a path of any depth where a stack needs one for each name.
 *
 * The calls are synchronous on purpose: each takes 2–5 µs, a turn through the thread pool about 100.
 *
 * Throws `WorkspaceError` `outside`, `missing` (a folder on the way), `not_a_file`, `invalid`. The caller disposes of the place.
 */
export function locate(jail: Jail, path: string, options: LocateOptions): Place {
  let { names: ahead, folderMeant } = parsePath(path)
  let walked: string[] = []
  let links = 0
  let folder = pinRoot(jail.root, jail.byDescriptor)
  const enter = (next: PinnedEntry) => {
    folder[Symbol.dispose]()
    folder = next
  }
  const beginAgain = (names: string[]) => {
    enter(pinRoot(jail.root, jail.byDescriptor))
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
        else return place(folder, '', folder, true)
        continue
      }
      if (name === '..') {
        if (walked.length === 0) throw outside(path)
        beginAgain([...walked.slice(0, -1), ...rest])
        continue
      }
      const entry = tryPin(folder, name, path)
      if (entry === null) {
        if (rest.includes('..')) ahead = cancelParents(ahead)
        else if (rest.length === 0) return place(folder, name, null, folderMeant)
        else if (options.makeParents) makeFolder(folder, name, path)
        else throw new WorkspaceError('missing', `${quote(path)} does not exist.`)
        continue
      }
      if (entry.stats.isSymbolicLink() && (rest.length > 0 || options.follow)) {
        entry[Symbol.dispose]()
        countLink()
        const route = linkRoute(jail, folder, name, path)
        if (route === null) continue
        if (rest.length === 0) folderMeant ||= route.folderMeant
        if (route.absolute) beginAgain([...route.names, ...rest])
        else ahead = [...route.names, ...rest]
        continue
      }
      if (rest.length === 0) return place(folder, name, entry, folderMeant)
      if (!entry.stats.isDirectory()) {
        entry[Symbol.dispose]()
        throw new WorkspaceError('not_a_file', `${quote([...walked, name].join('/'))} is not a folder.`)
      }
      enter(entry)
      walked.push(name)
      ahead = rest
    }
    throw invalid(path, 'takes too many steps')
  } catch (error) {
    folder[Symbol.dispose]()
    throw error
  }
}

function place(parent: PinnedEntry, name: string, entry: PinnedEntry | null, folderMeant: boolean): Place {
  return {
    parent,
    name,
    entry,
    folderMeant,
    [Symbol.dispose]() {
      parent[Symbol.dispose]()
      entry?.[Symbol.dispose]()
    },
  }
}

/** The entry, or null where nothing stands. */
function tryPin(folder: PinnedEntry, name: string, path: string): PinnedEntry | null {
  try {
    return pinChild(folder, name)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null
    throw refusal(error, path)
  }
}

/** Where the link leads, or null when it is no longer a link. */
function linkRoute(
  jail: Jail,
  folder: PinnedEntry,
  name: string,
  path: string,
): (Route & { absolute: boolean }) | null {
  let target: string
  try {
    target = readlinkSync(childPath(folder, name), 'utf8')
  } catch (error) {
    const code = systemCode(error)
    if (code === 'EINVAL' || code === 'ENOENT') return null
    throw error
  }
  if (target.includes('\uFFFD'))
    throw new WorkspaceError('not_a_file', `${quote(path)} runs through a link whose target is not UTF-8.`)
  const route = parseLink(target, jail.root)
  if (route === null) throw outside(path)
  return route
}

function makeFolder(folder: PinnedEntry, name: string, path: string): void {
  try {
    mkdirSync(childPath(folder, name), 0o755)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw refusal(error, path)
  }
}

/** Turns a system error that the path or the disk is to blame for into a refusal; others stay as they are. */
export function refusal(error: unknown, path: string): unknown {
  switch (systemCode(error)) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new WorkspaceError(
        'disk_full',
        `The disk is full: ${quote(path)} was not written. Free space under the data folder.`,
      )
    case 'ENAMETOOLONG':
      return invalid(path, 'is too long')
    case 'EACCES':
    case 'EPERM':
      return new WorkspaceError(
        'not_a_file',
        `The mode of ${quote(path)}, or of a folder on the way, forbids it. Change it with chmod.`,
      )
    case 'EISDIR':
    case 'ENOTDIR':
    case 'ELOOP':
    case 'ENXIO':
      return new WorkspaceError('not_a_file', `${quote(path)} is not a regular file.`)
    default:
      return error
  }
}
