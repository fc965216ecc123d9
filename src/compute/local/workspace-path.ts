import { WorkspaceError } from '../workspace.ts'

/** Where commands see the workspace, whatever the host's directory is called. */
const MOUNT_POINT = 'workspace'
/**
 * Linux: PATH_MAX without the closing NUL, and NAME_MAX. Beyond these no command could use the path either.
 * @bound system
 */
export const MAX_PATH_BYTES = 4095
const MAX_NAME_BYTES = 255

/** A path taken apart: names and `..`, to be walked from the workspace's directory or a link's own. */
export interface Route {
  names: string[]
  /** Whether the path ends in `/`, `/.` or `/..`, so it can only name a directory. */
  mustBeDirectory: boolean
}

/**
 * Splits a caller's path, which is relative to the workspace or begins with `/workspace`. Keeps `..`, because its
 * meaning depends on the links before it. Throws `WorkspaceError` `invalid`, `outside`.
 */
export function parseWorkspacePath(path: string): Route {
  if (path.includes('\0')) throw invalid(path, 'contains a NUL byte')
  if (!path.isWellFormed()) throw invalid(path, 'contains half of a surrogate pair')
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw invalid(path, `is longer than ${MAX_PATH_BYTES} bytes`)
  const route = split(path)
  if (path.startsWith('/') && route.names.shift() !== MOUNT_POINT) throw outside(path)
  for (const name of route.names) {
    if (Buffer.byteLength(name) > MAX_NAME_BYTES) {
      throw invalid(path, `has a component longer than ${MAX_NAME_BYTES} bytes`)
    }
  }
  return route
}

/**
 * Splits a link's target. Returns null for an absolute target that is neither below `/workspace`, as commands usually
 * see it, nor below `root`, as commands see it under an isolation without mounts.
 */
export function parseLink(target: string, root: string): (Route & { absolute: boolean }) | null {
  const route = split(target)
  if (!target.startsWith('/')) return { ...route, absolute: false }
  for (const top of [[MOUNT_POINT], split(root).names]) {
    if (top.every((name, index) => route.names[index] === name)) {
      return { ...route, names: route.names.slice(top.length), absolute: true }
    }
  }
  return null
}

/**
 * Returns paths sorted by code point, each once. Throws `WorkspaceError` `invalid` for one that has other than names
 * between single slashes.
 */
export function plainPaths(paths: readonly string[]): string[] {
  for (const path of paths) {
    parseWorkspacePath(path)
    if (path.split('/').some((name) => name === '' || name === '.' || name === '..'))
      throw invalid(path, 'is no plain path below the directory')
  }
  return [...new Set(paths)].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

/** Removes `name/..` pairs. Correct only if the first name does not exist, because then no link can be among them. */
export function cancelParents(names: string[]): string[] {
  const kept: string[] = []
  for (const name of names) {
    if (name === '..' && kept.length > 0 && kept.at(-1) !== '..') kept.pop()
    else kept.push(name)
  }
  return kept
}

/** Returns the refusal of a path that leaves the workspace. */
export const outside = (path: string): WorkspaceError =>
  new WorkspaceError(
    'outside',
    `${quote(path)} leads out of the workspace. Use a path relative to it or below /workspace/, and no symbolic link that leaves it.`,
  )

/** Returns the refusal of a path that can name no file. */
export const invalid = (path: string, why: string): WorkspaceError =>
  new WorkspaceError('invalid', `${quote(path)} ${why}. Use another path.`)

/** Returns the refusal of a path at which there is nothing. */
export const missing = (path: string): WorkspaceError =>
  new WorkspaceError('missing', `${quote(path)} does not exist.`)

/** Returns the refusal of a path at which there is something else. */
export const notAFile = (path: string): WorkspaceError =>
  new WorkspaceError('not_a_file', `${quote(path)} is not a regular file.`)

/** Returns the refusal of the workspace's own path. */
export const theRoot = (path: string): WorkspaceError =>
  new WorkspaceError('root', `${quote(path)} is the workspace itself. Name a file or directory in it.`)

/** Returns the refusal of a file that is larger than its reader takes. */
export const pathTooLarge = (path: string, size: number, most: number): WorkspaceError =>
  new WorkspaceError(
    'too_large',
    `${quote(path)} has ${size} bytes, more than the ${most} that are read at once. Split it with a command first.`,
  )

/** Returns the refusal of a directory that has more entries than are listed. */
export const tooManyEntries = (path: string): WorkspaceError =>
  new WorkspaceError(
    'too_large',
    `${quote(path)} has too many entries to be listed. Use a command, such as find.`,
  )

/** Formats a path for a message: on one line and not too long. */
export function quote(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path)
}

function split(path: string): Route {
  const parts = path.split('/')
  const last = parts.at(-1)
  return {
    names: parts.filter((part) => part !== '' && part !== '.'),
    mustBeDirectory: last === '' || last === '.' || last === '..',
  }
}
