import { chmodSync, constants, lstatSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf } from '../../runtime/error-info.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { Pace } from '../../runtime/pace.ts'
import type { MergeOptions, Staging, StagingOptions } from '../workspace.ts'
import { addPermissions, childPath, pinRoot } from './pinned.ts'
import { resolvePath, toWorkspaceError, type WorkspaceRoot } from './resolve-path.ts'
import {
  isStale,
  isStaleState,
  isStateName,
  isTemporary,
  stateName,
  TemporaryFile,
  temporaryName,
} from './temporary-file.ts'
import { removeTreeEntry } from './tree.ts'
import { notAFile, quote, theRoot } from './workspace-path.ts'

/** Most attempts if the target, or a directory on the way, changes meanwhile. @bound program */
const MAX_ATTEMPTS = 8
const ALL_PERMISSIONS = 0o700

/** Name of the staging directory beside a workspace. */
export const STAGING = 'staging'

/**
 * The directory beside a workspace in which berth prepares files before moving them in. It is on the workspace's file
 * system, so one rename moves a whole tree, and no sandbox sees it.
 */
export class StagingArea {
  readonly #root: string
  readonly #byDescriptor: boolean

  /** @param root absolute; made when it is first used */
  constructor(root: string, byDescriptor: boolean) {
    this.#root = root
    this.#byDescriptor = byDescriptor
  }

  /** Makes an empty directory of mode 0700. */
  make({ isState }: StagingOptions = { isState: false }): Staging {
    const { path, remove } = this.freshPath(isState ? stateName() : temporaryName())
    mkdirSync(path, { mode: 0o700 })
    return { path, [Symbol.asyncDispose]: remove }
  }

  /** See `Workspace.stagingNamed`. */
  named(name: string): Staging {
    if (!isStateName(name)) throw new Error(`${quote(name)} is no name of the workspace's staging area.`)
    return { path: join(this.#root, name), [Symbol.asyncDispose]: () => this.#remove(name) }
  }

  /** Makes an empty file. Throws the system's error. */
  file(): TemporaryFile {
    return new TemporaryFile(this.freshPath().path, constants.O_NOFOLLOW)
  }

  /** Returns an unused path in the area, for an entry to be moved away. */
  freshPath(name: string = temporaryName()): { path: string; remove(): Promise<void> } {
    mkdirSync(this.#root, { recursive: true, mode: 0o700 })
    return { path: join(this.#root, name), remove: () => this.#remove(name) }
  }

  /**
   * Checks that a directory was prepared in the area, and gives everything in it the permissions of a user's files.
   * Throws as `Workspace.moveIn` does.
   */
  async check(dir: string, { keepModes }: MergeOptions = { keepModes: false }): Promise<void> {
    if (!this.#holds(dir) || !lstatSync(dir).isDirectory()) {
      throw new Error(`${quote(dir)} was not prepared in the workspace's staging area.`)
    }
    await normalizeTree(dir, keepModes)
  }

  /** Reports whether a path is inside one of the area's directories. */
  #holds(path: string): boolean {
    const [name, ...below] = path.startsWith(`${this.#root}/`)
      ? path.slice(this.#root.length + 1).split('/')
      : []
    const isOwn = name !== undefined && (isTemporary(name) || isStateName(name))
    return isOwn && !below.includes('..')
  }

  /** Removes what killed berths left here. */
  async sweep(): Promise<void> {
    for (const name of ifPresent(() => readdirSync(this.#root)) ?? [])
      if (isStale(name) || isStaleState(name)) await this.#remove(name)
  }

  async #remove(name: string): Promise<void> {
    using root = ifPresent(() => pinRoot(this.#root, this.#byDescriptor))
    // The server's whole directory is gone.
    if (root === null) return
    await removeTreeEntry(root, name)
  }
}

/**
 * Moves a prepared directory to a path of a workspace. The old entry goes to the staging area first, in one rename,
 * and is removed once the new directory is in place; if the new one cannot be moved, the old one is put back. A kill
 * in between leaves nothing at the path, never a part.
 *
 * Throws as `Workspace.moveIn` does.
 */
export async function moveStaged(
  root: WorkspaceRoot,
  area: StagingArea,
  dir: string,
  path: string,
): Promise<void> {
  await area.check(dir)
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await swap(root, area, dir, path)
    } catch (error) {
      const raced = ['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(codeOf(error) ?? '')
      if (!raced || attempt === MAX_ATTEMPTS) throw toWorkspaceError(error, path)
    }
  }
}

async function swap(root: WorkspaceRoot, area: StagingArea, dir: string, path: string): Promise<void> {
  const old = area.freshPath()
  {
    using target = resolvePath(root, path, { follow: false, makeParents: true })
    if (target.name === '') {
      throw theRoot(path)
    }
    const targetPath = childPath(target.parent, target.name)
    const moved = target.entry !== null
    if (target.entry !== null) {
      // The parent is written into a directory that is moved: its owner needs the right to.
      if (target.entry.stats.isDirectory()) addPermissions(target.entry, ALL_PERMISSIONS)
      renameSync(targetPath, old.path)
    }
    try {
      renameSync(dir, targetPath)
    } catch (error) {
      if (moved) putBack(old.path, targetPath)
      throw error
    }
  }
  // A process that still writes into the old directory may keep it from being removed; the next start removes it.
  await old.remove().catch(() => {})
}

/**
 * Moves each file and link of a prepared directory to its path below another one, in place of any file or link there.
 *
 * Throws as `Workspace.mergeIn` does.
 */
export async function mergeStaged(
  root: WorkspaceRoot,
  area: StagingArea,
  dir: string,
  path: string,
  options?: MergeOptions,
): Promise<void> {
  await area.check(dir, options)
  const pace = new Pace()
  const pending = ['']
  for (let below = pending.pop(); below !== undefined; below = pending.pop()) {
    for (const entry of readdirSync(join(dir, below), { withFileTypes: true })) {
      if (pace.due) await pace.rest()
      const name = below === '' ? entry.name : `${below}/${entry.name}`
      if (entry.isDirectory()) pending.push(name)
      else mergeEntry(root, join(dir, name), path === '' ? name : `${path}/${name}`)
    }
  }
}

function mergeEntry(root: WorkspaceRoot, from: string, path: string): void {
  for (let attempt = 1; ; attempt += 1) {
    try {
      using target = resolvePath(root, path, { follow: false, makeParents: true })
      if (target.entry?.stats.isDirectory()) throw notAFile(path)
      renameSync(from, childPath(target.parent, target.name))
      return
    } catch (error) {
      // A directory on the way was removed meanwhile.
      if (codeOf(error) !== 'ENOENT' || attempt === MAX_ATTEMPTS) throw toWorkspaceError(error, path)
    }
  }
}

function putBack(from: string, to: string | Buffer): void {
  try {
    renameSync(from, to)
  } catch {
    // Something else has been created there; the next attempt moves that away.
  }
}

/**
 * Gives a prepared tree the permissions of a user's files: directories 0755, files 0644, or 0755 if their owner could
 * execute them. Removes all other bits, such as set-user-id; with `keepModes` files lose only those. Links are left alone and not followed. Nothing but berth
 * may change the tree meanwhile.
 *
 * @throws Error if the tree holds a device, a pipe, a socket, or a file with a second hard link, which may be one of
 * the machine's own files
 */
async function normalizeTree(dir: string, keepModes: boolean): Promise<void> {
  const modeOf = (mode: number) => (keepModes ? mode & 0o777 : mode & 0o100 ? 0o755 : 0o644)
  const pace = new Pace()
  const pending = [dir]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (pace.due) await pace.rest()
    // Before it is read: its owner may have no right to.
    chmodSync(next, 0o755)
    for (const entry of readdirSync(next, { withFileTypes: true })) {
      const path = join(next, entry.name)
      const stats = lstatSync(path)
      if (stats.isDirectory()) pending.push(path)
      else if (stats.isFile() && stats.nlink === 1) chmodSync(path, modeOf(stats.mode))
      else if (!stats.isSymbolicLink()) {
        const what = stats.isFile() ? 'a file with a second name' : 'no file, directory or link'
        throw new Error(`${quote(path.slice(dir.length + 1))} cannot be placed: it is ${what}.`)
      }
    }
  }
}
